"""Kernels as functions of torch (`qd.ad.torch_function`)."""

from ingot import _core
from ingot._core import IngotRuntimeError


def function(kernel, outputs):
    import torch

    owner = getattr(kernel, "__self__", None)
    core = getattr(kernel, "__func__", kernel)
    code = core.__wrapped__.__code__
    params = code.co_varnames[:code.co_argcount + code.co_kwonlyargcount]
    bound = params[:1] if owner is not None else ()
    unknown = [name for name in outputs if name not in params[len(bound):]]
    if unknown or not outputs:
        raise TypeError(f"torch_function: {core.__name__} has no parameter {', '.join(map(repr, unknown))}"
                        if unknown else "torch_function: outputs names no parameter")
    inputs = [name for name in params[len(bound):] if name not in outputs]

    class Function(torch.autograd.Function):
        @staticmethod
        def forward(ctx, *values):
            named = dict(zip(inputs, values))
            results = _results(outputs, named)
            ctx.names = [name for name in inputs if isinstance(named[name], torch.Tensor)]
            ctx.rest = {name: value for name, value in named.items() if name not in ctx.names}
            for name in ctx.names:
                named[name] = named[name].detach().contiguous()
            _core.launch(core, _full(named | results))
            ctx.launch = _core.last_launch(core, _full(named | results))
            ctx.save_for_backward(*(values[inputs.index(name)] for name in ctx.names), *results.values())
            out = tuple(results.values())
            return out if len(out) > 1 else out[0]

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, *gradients):
            saved = ctx.saved_tensors
            needs = dict(zip(inputs, ctx.needs_input_grad))
            named = dict(ctx.rest)
            for name, value in zip(ctx.names, saved):
                named[name] = _with_gradient(value, needs[name], None)
            for name, value, gradient in zip(outputs, saved[len(ctx.names):], gradients):
                named[name] = _with_gradient(value, True, gradient)
            plain = {name: value.detach().contiguous() for name, value in zip((*ctx.names, *outputs), saved)}
            _core.check_launch(core, _full(ctx.rest | plain), ctx.launch)
            _core.launch(core.grad, _full(named), ctx.launch[:1])
            return tuple(named[name].grad if needs[name] else None for name in inputs)

    def _full(named):
        return tuple(owner if name in bound else named[name] for name in params)

    def _results(wanted, named):
        first = next((v for v in named.values() if isinstance(v, torch.Tensor) and v.is_floating_point()), None)
        made = {}
        for name, shape in wanted.items():
            shape = shape(**named) if callable(shape) else shape
            shape, dtype = shape if len(shape) == 2 and isinstance(shape[1], torch.dtype) else (shape, None)
            dtype = dtype or (first.dtype if first is not None else torch.get_default_dtype())
            made[name] = torch.zeros(shape, dtype=dtype)
        return made

    def call(*args, **kwargs):
        named = dict(zip(inputs, args))
        if len(args) > len(inputs) or kwargs.keys() & named.keys() or {*named, *kwargs} != {*inputs}:
            raise TypeError(f"{core.__name__}: as a function of torch it takes ({', '.join(inputs)})")
        named |= kwargs
        return Function.apply(*(named[name] for name in inputs))

    call.__name__ = core.__name__
    call.__doc__ = core.__doc__
    return call


def _with_gradient(value, needed, gradient):
    """The same numbers as a leaf whose gradient is this one; None: zeros."""
    import torch

    value = value.detach().contiguous()
    if not needed or not value.is_floating_point():
        return value
    value.requires_grad_()
    value.grad = torch.zeros_like(value) if gradient is None else gradient.detach().clone().contiguous()
    if value.grad.shape != value.shape:
        raise IngotRuntimeError("the gradient of a result has another shape than the result")
    return value
