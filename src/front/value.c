/* Values while lowering: making them, looking at things behind the gate, and turning
 * scalars into instructions by the reference's type rules. Used by all of lowering. */
#include "front/front_int.h"

#include <string.h>

/* ---- making ----------------------------------------------------------------------------- */

value ing_front_none(void) {
    return (value){.kind = V_NONE};
}

value ing_front_bool(bool b) {
    return (value){.kind = V_BOOL, .i = b};
}

value ing_front_int(int64_t i) {
    return (value){.kind = V_INT, .i = i};
}

value ing_front_int_from(__int128 x) {
    return (value){
        .kind = V_INT, .i = (int64_t)(uint64_t)x, .wide = x > (__int128)INT64_MAX};
}

value ing_front_float(double f) {
    return (value){.kind = V_FLOAT, .f = f};
}

value ing_front_rt(uint32_t inst, ing_type t) {
    return (value){.kind = V_RT, .inst = inst, .type = t};
}

value ing_front_seq(value_kind kind, value *items, uint32_t n) {
    return (value){.kind = (uint8_t)kind, .items = items, .n = n};
}

bool ing_front_is_runtime(const value *v) {
    return v->kind == V_RT || v->kind == V_REF;
}

bool ing_front_is_scalar(const value *v) {
    if (v->kind == V_SEEN) return v->seen == ING_GATE_ENUM;
    return v->kind == V_BOOL || v->kind == V_INT || v->kind == V_FLOAT ||
           (ing_front_is_runtime(v) && v->type < ING_DTYPE_N);
}

bool ing_front_is_static(const value *v) {
    if (v->kind == V_STRUCT) return false;
    /* Known by their lengths: items may come at run time. */
    if (v->kind == V_ITER && (v->tag == ING_IN_PY_ENUMERATE ||
                              v->tag == ING_IN_PY_ZIP || v->tag == ING_IN_PY_REVERSED))
        return true;
    if (v_holds(v)) {
        for (uint32_t i = 0; i < v_children(v); i++)
            if (!ing_front_is_static(&v->items[i])) return false;
        return true;
    }
    return !ing_front_is_runtime(v) && v->kind != V_SHAPE;
}

/* ---- messages ----------------------------------------------------------------------------- */

static const char *describe_seen(frame *fr, const value *v) {
    char buf[120];
    const char *kind = "an object";
    const ing_gate *g = fr->lo->gate;
    g->ops->describe(g->self, v->gref, buf, sizeof buf);
    const char *name = strchr(buf, ' '); /* what has one: modules and what is called */
    switch (v->seen) {
    case ING_GATE_MODULE: kind = "the module"; break;
    case ING_GATE_KERNEL: kind = "the kernel"; break;
    case ING_GATE_CLASS: kind = "the class"; break;
    case ING_GATE_OBJECT: kind = name ? "the function" : "an object"; break;
    case ING_GATE_ENUM: kind = "a member of an enum"; break;
    case ING_GATE_TUPLE: return "a tuple from outside of the kernel";
    case ING_GATE_LIST: return "a list from outside of the kernel";
    case ING_GATE_DICT: return "a dict from outside of the kernel";
    default: break;
    }
    if (name) return ing_arena_printf(&fr->lo->arena, "%s %s", kind, name + 1);
    return ing_arena_printf(&fr->lo->arena, "%s of type %s", kind, buf);
}

static const char *describe_iterator(const value *v) {
    switch (v->tag) {
    case ING_IN_PY_RANGE: return "a range";
    case ING_IN_PY_ENUMERATE: return "an enumerate";
    case ING_IN_PY_ZIP: return "a zip";
    case ING_IN_NDRANGE: return "an ndrange";
    default: return "an iterator";
    }
}

const char *ing_front_describe(frame *fr, const value *v) {
    ing_arena *a = &fr->lo->arena;
    const char *s = NULL;
    switch ((value_kind)v->kind) {
    case V_VOID: s = "nothing (the func returns no value)"; break;
    case V_NONE: s = "None"; break;
    case V_BOOL: s = v->i ? "True" : "False"; break;
    case V_INT:
        s = v->wide ? ing_arena_printf(a, "the integer %llu", (unsigned long long)v->i)
                    : ing_arena_printf(a, "the integer %lld", (long long)v->i);
        break;
    case V_FLOAT: s = ing_arena_printf(a, "the number %g", v->f); break;
    case V_STR: s = ing_arena_printf(a, "the string '%.40s'", v->s); break;
    case V_DTYPE:
        s = ing_arena_printf(a, "the dtype %s", ing_dtype_name(v->dtype));
        break;
    case V_TUPLE:
        s = v->tensor ? ing_front_tensor_describe(fr, v)
                      : ing_arena_printf(a, "a tuple of %u", v->n);
        break;
    case V_LIST: s = ing_arena_printf(a, "a list of %u", v->n); break;
    case V_DICT: s = ing_arena_printf(a, "a dict of %u", v->n); break;
    case V_VIEW: s = "a view of an array"; break;
    case V_BUNDLE:
        s = v->info && v->info->array ? "an array of structs" : "a field";
        break;
    case V_PARAM:
    case V_THING: s = "a Python object"; break;
    case V_SEEN: s = describe_seen(fr, v); break;
    case V_FUNC: s = "a func"; break;
    case V_INTRINSIC:
        s = ing_arena_printf(a, "the function %s",
                             ing_intrinsic_name((ing_intrinsic)v->tag));
        break;
    case V_SLICE: s = "a slice"; break;
    case V_FORMAT: s = "a formatted string"; break;
    case V_ITER: s = describe_iterator(v); break;
    case V_SHAPE: s = "a shape"; break;
    case V_RT:
    case V_REF:
        s = v->type < ING_DTYPE_N
                ? ing_arena_printf(a, "a run-time %s", ing_dtype_name(v_type(v)))
                : ing_front_tensor_describe(fr, v);
        break;
    case V_ARRAY: s = ing_front_field_place(fr, v) ? "a field" : "an array"; break;
    case V_TYPE: s = "a vector or matrix type"; break;
    case V_STRUCT: s = ing_arena_printf(a, "a struct of %u members", v->n); break;
    case V_STRUCT_TYPE: s = "a struct type"; break;
    }
    return s ? s : "?";
}

/* ---- looking --------------------------------------------------------------------------------- */

uint32_t ing_front_place(const frame *fr, ing_gref ref) {
    const ing_gate *g = fr->lo->gate;
    return g->ops->place ? g->ops->place(g->self, ref) : 0;
}

/* What a func reaches through a parameter and the kernel by another name is one argument. */
static ing_status new_arg(frame *fr, ing_gref ref, ing_type t, ing_dtype dtype,
                          uint32_t *out) {
    lowering *lo = fr->lo;
    ing_hash128 key = {ref, 1},
                place = {ing_front_place(fr, ref), (uint64_t)t << 8 | 3};
    uint32_t known = ing_map_get(&lo->args, key);
    bool ok = true;
    if (!known && place.lo) {
        known = ing_map_get(&lo->args, place);
        ok = !known || ing_map_put(&lo->args, key, known);
    }
    ing_front_note_capture(fr, ref);
    if (!known) {
        known = ing_ir_add_arg(lo->mod, t) + 1;
        ing_front_arg a = {.ref = ref, .dtype = dtype};
        ok = ing_map_put(&lo->args, key, known) && ing_vec_push(&lo->out->args, a) &&
             (!place.lo || ing_map_put(&lo->args, place, known));
    }
    if (!ok) return ing_fail(lo->e, ING_MEMORY, "no memory while compiling a kernel");
    *out = known - 1;
    return ING_OK;
}

ing_status ing_front_array_arg(frame *fr, ing_node at, const ing_gate_fact *f,
                               ing_gref ref, ing_type *type, uint32_t *k) {
    if (f->ndim > ING_MAX_NDIM)
        return ing_front_fail_at(fr, at, ING_TYPE, "reshape it",
                                 "an array of %u axes; at most %d", f->ndim,
                                 ING_MAX_NDIM);
    ing_type elem = f->dtype;
    if (f->elem_rank)
        elem =
            ing_ir_type_tensor(fr->lo->mod, f->dtype, f->elem_shape[0],
                               f->elem_rank == 2 ? f->elem_shape[1] : 1, f->elem_rank);
    *type = f->kind == ING_GATE_FIELD ? ing_ir_type_field(fr->lo->mod, f->place)
                                      : ing_ir_type_array(fr->lo->mod, elem, f->ndim,
                                                          f->grad != 0, f->layout);
    return new_arg(fr, ref, *type, ING_VOID, k);
}

static ing_status force_array(frame *fr, ing_node at, const ing_gate_fact *f,
                              value *v) {
    ing_type t = ING_VOID;
    uint32_t k = 0;
    ING_TRY(ing_front_array_arg(fr, at, f, v->gref, &t, &k));
    ING_TRY(ing_front_arg_here(fr, &k));
    uint32_t inst = ing_ir_emit(&fr->b, ING_OP_ARRAY, t, k, 0, 0);
    *v = (value){
        .kind = V_ARRAY, .inst = inst, .type = t, .n = f->ndim, .gref = v->gref};
    return ING_OK;
}

static ing_status force_scalar(frame *fr, const ing_gate_fact *f, value *v) {
    uint32_t k = 0;
    ING_TRY(new_arg(fr, v->gref, f->dtype, f->dtype, &k));
    *v = ing_front_rt(ing_ir_emit(&fr->b, ING_OP_ARG, f->dtype, k, 0, 0), f->dtype);
    v->fixed = true;
    return ING_OK;
}

static void force_static(const ing_gate_fact *f, value *v) {
    ing_gref ref = v->gref;
    *v = (value){.gref = ref, .seen = (uint8_t)f->kind};
    switch (f->kind) {
    case ING_GATE_NONE: v->kind = V_NONE; break;
    case ING_GATE_BOOL:
        v->kind = V_BOOL;
        v->i = f->i != 0;
        v->bound = f->dtype != ING_VOID; /* NumPy's */
        break;
    case ING_GATE_INT:
        v->kind = V_INT;
        v->dtype = (uint8_t)f->dtype;
        v->i = f->i;
        v->wide = f->wide;
        break;
    case ING_GATE_FLOAT:
        v->kind = V_FLOAT;
        v->dtype = (uint8_t)f->dtype;
        v->f = f->f;
        break;
    case ING_GATE_STR:
        v->kind = V_STR;
        v->s = f->s;
        v->n = f->n;
        break;
    case ING_GATE_DTYPE:
        v->kind = V_DTYPE;
        v->dtype = (uint8_t)f->dtype;
        break;
    case ING_GATE_FUNC:
        v->kind = V_FUNC;
        v->bound = f->bound;
        v->top_only = f->requires_top_level;
        v->closed = f->is_real_function;
        break;
    case ING_GATE_INTRINSIC:
        v->kind = V_INTRINSIC;
        v->tag = (uint16_t)f->id;
        break;
    case ING_GATE_ENUM:
        v->kind = V_SEEN;
        v->n = f->len;
        v->closed = f->flag;
        v->i = f->i;
        v->wide = f->wide;
        v->bound = f->bound;
        break;
    default:
        v->kind = V_SEEN;
        v->n = f->len;
        v->bound = f->bound;
        break;
    }
}

/* Nothing is asked for what the member says of itself: `.value` is a property. */
ing_status ing_front_enum_value(frame *fr, ing_node at, value *v) {
    if (v->kind != V_SEEN || v->seen != ING_GATE_ENUM) return ING_OK;
    if (v->n != ING_ENUM_INT) {
        ING_TRY(ing_front_thing_attr(fr, at, v->gref, "value", v));
        return ing_front_force(fr, at, v);
    }
    *v = (value){.kind = V_INT, .i = v->i, .wide = v->wide, .origin = v->gref};
    return ING_OK;
}

static ing_status force_tensor_type(frame *fr, ing_node at, const ing_gate_fact *f,
                                    value *v) {
    uint32_t cols = f->elem_rank == 2 ? f->elem_shape[1] : 1;
    if (!f->dtype || !f->elem_shape[0] || !cols)
        return ing_front_fail_at(
            fr, at, ING_TYPE, "give size and dtype: qd.types.vector(3, qd.f32)",
            "a vector or matrix type without size or dtype can only "
            "annotate parameters");
    v->kind = V_TYPE;
    v->type =
        ing_ir_type_tensor(fr->lo->mod, f->dtype, f->elem_shape[0], cols, f->elem_rank);
    return ING_OK;
}

ing_status ing_front_force(frame *fr, ing_node at, value *v) {
    if (v->kind != V_THING) return ING_OK;
    uint32_t known = ing_map_get(&fr->lo->args, (ing_hash128){v->gref, 1});
    bool bake = fr->in_static && fr->lo->gate->ops->bake;
    if (known &&
        !bake) { /* it was looked at before; only the instruction is needed here */
        ing_type t = fr->lo->mod->args.at[known - 1].type;
        bool scalar = t < ING_DTYPE_N;
        uint32_t k = known - 1;
        if (!scalar) ING_TRY(ing_front_arg_here(fr, &k));
        uint32_t inst =
            ing_ir_emit(&fr->b, scalar ? ING_OP_ARG : ING_OP_ARRAY, t, k, 0, 0);
        *v = (value){.kind = scalar ? V_RT : V_ARRAY,
                     .inst = inst,
                     .type = t,
                     .n = ing_ir_type(fr->lo->mod, t)->rank,
                     .fixed = scalar,
                     .gref = v->gref};
        return ING_OK;
    }
    ing_gate_fact f = {0};
    if (bake)
        GATE(fr, at, bake, v->gref, &f, fr->lo->e);
    else
        GATE(fr, at, look, v->gref, &f, fr->lo->e);
    if (f.kind == ING_GATE_ARRAY || f.kind == ING_GATE_FIELD)
        return force_array(fr, at, &f, v);
    if (f.kind == ING_GATE_BUNDLE) return ing_front_bundle_thing(fr, at, &f, v);
    if (f.kind == ING_GATE_SCALAR) return force_scalar(fr, &f, v);
    if (f.kind == ING_GATE_TENSOR) return ing_front_tensor_thing(fr, at, &f, v);
    if (f.kind == ING_GATE_TENSOR_TYPE) return force_tensor_type(fr, at, &f, v);
    if (f.kind == ING_GATE_VIEW) return ing_front_view_thing(fr, at, v);
    if (f.kind == ING_GATE_STRUCT_TYPE)
        return ing_front_struct_type(fr, at, f.structure, v);
    if (f.kind == ING_GATE_ABSENT)
        return ing_front_fail_at(fr, at, ING_NAME, "assign it before the kernel runs",
                                 "there is nothing here");
    ing_gref origin = v->gref;
    force_static(&f, v);
    v->origin = origin;
    return ING_OK;
}

/* The argument or the parameter is an array of structs: both must be. */
static ing_status check_structs(frame *fr, ing_node at, const ing_gate_param *p,
                                const value *v) {
    const ing_gate_struct *have =
        v->kind == V_BUNDLE && v->info ? v->info->array : NULL;
    value first = {0};
    bool placed = false;
    if (have) ING_TRY(ing_front_bundle_first(fr, at, v, &first, &placed));
    ing_gate_fact f = {.structure = have};
    if (first.kind == V_ARRAY) f.ndim = ing_ir_type(fr->lo->mod, first.type)->rank;
    if (have && !p->dtype && ing_gate_fits_structs(&f, p->layout, p->ndim))
        return ING_OK;
    return ing_front_fail_at(
        fr, at, ING_TYPE,
        "pass an array of such elements, or annotate the parameter as qd.template()",
        have && p->layout
            ? "the parameter is annotated as an array of other structs, or "
              "of another number of axes"
        : have
            ? "the parameter is annotated as an array of numbers or vectors; the "
              "argument is an array of structs"
            : "the parameter is annotated as an array of structs; the argument is %s",
        ing_front_describe(fr, v));
}

ing_status ing_front_check_array(frame *fr, ing_node at, const ing_gate_param *p,
                                 const value *v) {
    if (p->optional && v->kind == V_NONE) return ING_OK;
    if (p->fields && v->kind == V_BUNDLE) return ING_OK;
    if (p->layout || (v->kind == V_BUNDLE && v->info && v->info->array))
        return check_structs(fr, at, p, v);
    if (v->kind != V_ARRAY)
        return ing_front_fail_at(
            fr, at, ING_TYPE,
            "pass an array, or annotate the parameter as qd.template()",
            "the parameter is annotated as an array; the argument is %s",
            ing_front_describe(fr, v));
    const ing_type_info *t = ing_ir_type(fr->lo->mod, v->type);
    const ing_type_info *elem = ing_ir_type(fr->lo->mod, t->elem);
    ing_dtype have = (ing_dtype)(elem->kind == ING_TYPE_TENSOR ? elem->dtype : t->elem);
    uint32_t rank = elem->kind == ING_TYPE_TENSOR ? elem->rank : 0;
    if (p->dtype && p->dtype != have)
        return ing_front_fail_at(
            fr, at, ING_TYPE, "pass an array of that dtype, or leave the dtype out",
            "the parameter is annotated as an array of %s; the argument is one of %s",
            ing_dtype_name(p->dtype), ing_dtype_name(have));
    if ((p->dtype || p->tensor.rank) &&
        (p->tensor.rank != rank ||
         (p->tensor.shape[0] && p->tensor.shape[0] != elem->rows) ||
         (rank == 2 && p->tensor.shape[1] && p->tensor.shape[1] != elem->cols)))
        return ing_front_fail_at(
            fr, at, ING_TYPE, "pass an array with such elements",
            "the elements of the argument do not have the shape of the annotation");
    if (p->ndim >= 0 && (uint32_t)p->ndim != t->rank)
        return ing_front_fail_at(
            fr, at, ING_TYPE, "pass an array with that many axes, or leave ndim out",
            "the parameter is annotated as an array of %d axes; the argument has %u",
            p->ndim, t->rank);
    return ING_OK;
}

ing_status ing_front_param(frame *fr, ing_node at, uint32_t i, value *out) {
    ing_gate_param *p = &fr->params[i];
    if (!fr->params_known[i]) {
        GATE(fr, at, param_info, i, p, fr->lo->e);
        fr->params_known[i] = true;
    }
    ing_gref ref = 0;
    GATE(fr, at, param, i, &ref, fr->lo->e);
    *out = (value){.kind = V_THING, .gref = ref};
    if (p->passing == ING_PASS_VALUE && p->layout)
        return ing_front_struct_param(fr, at, ref, i, p, out);
    if (p->passing == ING_PASS_VALUE && p->tensor.rank)
        return ing_front_tensor_param(fr, at, ref, p, out);
    if (p->passing == ING_PASS_VALUE) {
        ing_gate_fact f = {.kind = ING_GATE_SCALAR, .dtype = p->dtype};
        ING_TRY(force_scalar(fr, &f, out));
        out->arg = true;
        return ING_OK;
    }
    if (p->passing != ING_PASS_ARRAY && p->passing != ING_PASS_VIEW) return ING_OK;
    ING_TRY(ing_front_force(fr, at, out));
    if (p->passing == ING_PASS_VIEW) return ing_front_check_view(fr, at, p, out);
    out->arg = out->kind == V_ARRAY;
    out->clamp = p->clamp && out->arg;
    if (p->no_grad && out->kind == V_ARRAY) {
        uint32_t k = ing_map_get(&fr->lo->args, (ing_hash128){ref, 1});
        fr->lo->out->args.at[k - 1].constant = true;
    }
    return ing_front_check_array(fr, at, p, out);
}

/* ---- types ------------------------------------------------------------------------------------- */

/* The reference: a float wins over an integer, the wider over the narrower; at equal
 * width unsigned over signed, else the right one. u1 counts as an unsigned byte. */
ing_dtype ing_front_promote(ing_dtype a, ing_dtype b) {
    bool fa = ing_dtype_is_float(a), fb = ing_dtype_is_float(b);
    if (fa != fb) return fa ? a : b;
    uint32_t wa = ing_dtype_bytes(a), wb = ing_dtype_bytes(b);
    if (wa != wb) return wa > wb ? a : b;
    return !ing_dtype_is_signed(a) && ing_dtype_is_signed(b) ? a : b;
}

bool ing_front_int_fits(const value *v, ing_dtype t) {
    if (t == ING_U1) return !v->wide && (v->i == 0 || v->i == 1);
    uint32_t bits = ing_dtype_bits(t);
    if (ing_dtype_is_signed(t)) {
        int64_t max = bits == 64 ? INT64_MAX : ((int64_t)1 << (bits - 1)) - 1;
        return !v->wide && v->i <= max && v->i >= -max - 1;
    }
    if (!v->wide && v->i < 0) return false;
    return bits == 64 || (uint64_t)v->i >> bits == 0;
}

static ing_status fail_range(frame *fr, ing_node at, const value *v, const char *what,
                             ing_dtype t) {
    const char *remedy = ing_arena_printf(
        &fr->lo->arena,
        "write qd.i64(...) or qd.u64(...) around it, or set default_ip in "
        "qd.init()");
    const char *text = ing_front_describe(fr, v);
    if (strncmp(text, "the integer ", 12) == 0) text += 12;
    return ing_front_fail_at(fr, at, ING_TYPE, remedy,
                             "Integer literal %s exceeded the range of %s: %s", text,
                             what, ing_dtype_name(t));
}

ing_status ing_front_literal_dtype(frame *fr, ing_node at, const value *v,
                                   ing_dtype *out) {
    if (v->kind == V_BOOL) {
        *out = ING_U1;
        return ING_OK;
    }
    if (v->dtype) {
        *out = v->dtype;
        return ING_OK;
    }
    int64_t t = 0;
    bool is_int = v->kind == V_INT;
    ING_TRY(ing_front_config_get(fr, at,
                                 is_int ? ING_SET_default_ip : ING_SET_default_fp, &t));
    *out = (ing_dtype)t;
    if (is_int && !ing_front_int_fits(v, *out))
        return fail_range(fr, at, v, "default_ip", *out);
    return ING_OK;
}

/* ---- scalars as instructions ---------------------------------------------------------------------- */

uint32_t ing_front_const_of(frame *fr, const value *v, ing_dtype t) {
    if (ing_dtype_is_float(t)) {
        double d = v->kind == V_FLOAT ? v->f
                   : v->wide          ? (double)(uint64_t)v->i
                                      : (double)v->i;
        return ing_ir_const_float(&fr->b, t, d);
    }
    return ing_ir_const_int(&fr->b, t, v->i);
}

const char *ing_front_number_remedy(const value *v) {
    switch ((value_kind)v->kind) {
    case V_ARRAY:
        return "read an element of it, in a loop over its indices: a[i], or a[()] when "
               "it has no axes";
    case V_TUPLE:
    case V_LIST: return "pick an item: t[0]";
    case V_DICT: return "pick an item: d[key]";
    case V_BUNDLE:
    case V_VIEW: return "read an element of it: v[i]";
    case V_SHAPE: return "pick an axis: a.shape[0]";
    case V_STR: return "strings exist only as compile-time values; use a number";
    case V_FORMAT: return "formatted text can only be printed";
    case V_FUNC:
    case V_INTRINSIC: return "call it";
    case V_DTYPE: return "call it to convert a number: qd.f32(x)";
    case V_TYPE: return "call it to make one: qd.types.vector(3, qd.f32)(0.0)";
    case V_NONE: return "give it a number; qd.static(x is None) asks before";
    case V_VOID: return "let the func return a value";
    case V_ITER: return "loop over it";
    case V_SLICE: return "use an integer";
    case V_STRUCT_TYPE: return "call it to make a struct";
    case V_SEEN:
        return v->seen == ING_GATE_TUPLE || v->seen == ING_GATE_LIST
                   ? "pick an item: t[0]"
               : v->seen == ING_GATE_DICT ? "pick an item: d[key]"
                                          : "use one of its members that is a number, "
                                            "or convert it outside of "
                                            "the kernel: x = float(x)";
    default: return "use one of its members that is a number";
    }
}

static ing_status fail_number(frame *fr, ing_node at, const value *v) {
    return ing_front_fail_at(fr, at, ING_TYPE, ing_front_number_remedy(v),
                             "a number is needed here; this is %s",
                             ing_front_describe(fr, v));
}

ing_status ing_front_load(frame *fr, ing_node at, const value *given, value *out) {
    value v = *given;
    ING_TRY(ing_front_force(fr, at, &v));
    ING_TRY(ing_front_enum_value(fr, at, &v));
    if (ing_front_is_tensor(fr, &v)) return ing_front_tensor_load(fr, at, &v, out);
    if (v.kind == V_RT) {
        *out = v;
        return ING_OK;
    }
    if (v.kind == V_REF) {
        *out = ing_front_rt(ing_ir_emit(&fr->b, ING_OP_LOAD, v.type, v.inst, 0, 0),
                            v.type);
        out->alt = v.alt_place ? ing_ir_emit(&fr->b, ING_OP_LOAD, ING_F64, v.alt, 0, 0)
                               : v.alt;
        return ING_OK;
    }
    if (v.kind == V_ARRAY && v.n == 0 && !ing_front_field_place(fr, &v)) {
        value one; /* NumPy's number in an array without axes */
        ING_TRY(ing_front_array_element(fr, at, &v, NULL, 0, at, &one));
        return ing_front_load(fr, at, &one, out);
    }
    if (v.kind != V_BOOL && v.kind != V_INT && v.kind != V_FLOAT)
        return fail_number(fr, at, &v);
    ing_dtype t = ING_VOID;
    ING_TRY(ing_front_literal_dtype(fr, at, &v, &t));
    *out = ing_front_rt(ing_front_const_of(fr, &v, t), t);
    return ING_OK;
}

ing_status ing_front_load_number(frame *fr, ing_node at, const value *v, value *out) {
    ING_TRY(ing_front_load(fr, at, v, out));
    if (out->type < ING_DTYPE_N) return ING_OK;
    return ing_front_fail_at(fr, at, ING_TYPE, "pick an element: v[0]",
                             "a number is needed here; this is %s",
                             ing_front_describe(fr, out));
}

uint32_t ing_front_emit_cast(frame *fr, uint32_t inst, ing_dtype from, ing_dtype to) {
    if (from == to) return inst;
    if (to != ING_U1) return ing_ir_emit(&fr->b, ING_OP_CAST, to, inst, 0, 0);
    uint32_t zero = ing_dtype_is_float(from) ? ing_ir_const_float(&fr->b, from, 0)
                                             : ing_ir_const_int(&fr->b, from, 0);
    return ing_ir_emit(&fr->b, ING_OP_NE, ING_U1, inst, zero, 0);
}

/* A number without a type becomes what it is converted to if that is an f64 or an integer
 * type that holds it; else it takes its default type first, which may round it. */
ing_status ing_front_convert(frame *fr, ing_node at, const value *given, ing_dtype to,
                             uint32_t *inst) {
    value v = *given;
    ING_TRY(ing_front_force(fr, at, &v));
    if (v.kind == V_INT && !v.dtype && to != ING_U1) {
        bool direct = ing_dtype_is_float(to) || ing_front_int_fits(&v, to);
        if (!direct) {
            ing_dtype t = ING_VOID;
            ING_TRY(ing_front_literal_dtype(fr, at, &v, &t));
        }
        *inst = ing_front_const_of(fr, &v, to);
        return ING_OK;
    }
    if (ing_front_is_untyped(&v)) ING_TRY(ing_front_load_with(fr, at, &v, to, &v));
    ING_TRY(ing_front_load_number(fr, at, &v, &v));
    *inst = ing_front_emit_cast(fr, v.inst, v_type(&v), to);
    return ING_OK;
}

ing_status ing_front_condition(frame *fr, ing_node at, const value *v, const char *what,
                               uint32_t *inst) {
    value x;
    ING_TRY(ing_front_load(fr, at, v, &x));
    if (x.type >= ING_DTYPE_N)
        return ing_front_fail_at(fr, at, ING_TYPE, "use .any() or .all()",
                                 "`%s` conditions must be an integer; this is %s", what,
                                 ing_front_describe(fr, &x));
    if (ing_dtype_is_float(v_type(&x)))
        return ing_front_fail_at(
            fr, at, ING_TYPE, "compare it: `x != 0`",
            "`%s` conditions must be an integer; found %s. Consider using "
            "`%s x != 0` instead of `%s x` for float values.",
            what, ing_dtype_name(v_type(&x)), what, what);
    *inst = ing_front_emit_cast(fr, x.inst, v_type(&x), ING_U1);
    return ING_OK;
}

uint32_t ing_front_str_len(const char *s, uint32_t n) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < n; i++) count += ((uint8_t)s[i] & 0xC0) != 0x80;
    return count;
}

ing_status ing_front_truth(frame *fr, ing_node at, const value *v, bool *out) {
    value truth;
    switch ((value_kind)v->kind) {
    case V_NONE: *out = false; return ING_OK;
    case V_BOOL:
    case V_INT: *out = v->i != 0; return ING_OK;
    case V_FLOAT: *out = v->f != 0; return ING_OK;
    case V_STR:
    case V_TUPLE:
    case V_LIST:
    case V_DICT: *out = v->n != 0; return ING_OK;
    case V_SEEN:
        ING_TRY(ing_front_derive(fr, at, v->gref, ING_DERIVE_TRUTH, 0, &truth));
        *out = truth.kind == V_BOOL && truth.i;
        return ING_OK;
    case V_DTYPE:
    case V_FUNC:
    case V_INTRINSIC: *out = true; return ING_OK;
    case V_ARRAY:
        return ing_front_fail_at(fr, at, ING_TYPE, ing_front_number_remedy(v),
                                 "an array is neither true nor false");
    default:
        return ing_front_fail_at(
            fr, at, ING_COMPILE,
            "what qd.static is given must not depend on run-time values",
            "a compile-time value is needed here; this is %s",
            ing_front_describe(fr, v));
    }
}

/* ---- sequences ---------------------------------------------------------------------------------------- */

enum { MAX_ITEMS = 1 << 16 };

static ing_status range_items(frame *fr, ing_node at, const value *v, value **items,
                              uint32_t *n, bool *ok) {
    __int128 part[3] = {0, 0, 1};
    for (uint32_t i = 0; i < v->n; i++) {
        if (v->items[i].kind != V_INT) {
            *ok = false;
            return ING_OK;
        }
        part[v->n == 1 ? 1 : i] = ing_front_int_of(&v->items[i]);
    }
    if (part[2] == 0)
        return ing_front_fail_at(fr, at, ING_VALUE, "leave the step out",
                                 "range() with a step of zero");
    __int128 span = part[1] - part[0], step = part[2];
    __int128 count = (span + step + (step > 0 ? -1 : 1)) / step;
    if (count < 0) count = 0;
    if (count > MAX_ITEMS)
        return ing_front_fail_at(
            fr, at, ING_VALUE, "leave out qd.static: a run-time loop has no limit",
            "a compile-time sequence of more than %d items", MAX_ITEMS);
    *n = (uint32_t)count;
    *items = ING_NEW_ARRAY(&fr->lo->arena, *n + 1, value);
    for (uint32_t i = 0; *items && i < *n; i++)
        (*items)[i] = ing_front_int_from(part[0] + (__int128)i * part[2]);
    return ING_OK;
}

/* Items of a tuple or list from outside. */
static ing_status seen_items(frame *fr, ing_node at, const value *given, value **items,
                             uint32_t *n) {
    value counted = *given, *v = &counted;
    ING_TRY(ing_front_count(fr, at, v));
    if (v->n > MAX_ITEMS)
        return ing_front_fail_at(fr, at, ING_VALUE, "pass the numbers as an array",
                                 "a compile-time sequence of more than %d items",
                                 MAX_ITEMS);
    *n = v->n;
    *items = ING_NEW_ARRAY(&fr->lo->arena, v->n + 1, value);
    for (uint32_t i = 0; *items && i < v->n; i++) {
        ing_gate_key k = {.i = i};
        ING_TRY(ing_front_thing_item(fr, at, v->gref, &k, &(*items)[i]));
    }
    return ING_OK;
}

/* enumerate(seq[, start]) and zip(a, b, ...): tuples of their items. */
static ing_status rows_items(frame *fr, ing_node at, const value *v, value **items,
                             uint32_t *n, bool *ok) {
    bool count = v->tag == ING_IN_PY_ENUMERATE;
    uint32_t width = count ? 2 : v->n, len = UINT32_MAX;
    value **cols = ING_NEW_ARRAY(&fr->lo->arena, v->n + 1, value *);
    if (!cols) return ING_OK;
    for (uint32_t c = 0; c < (count ? 1 : v->n); c++) {
        uint32_t m = 0;
        ING_TRY(ing_front_items(fr, at, &v->items[c], &cols[c], &m, ok));
        if (!*ok) return ING_OK;
        if (m < len) len = m;
    }
    *n = v->n ? len : 0;
    *items = ING_NEW_ARRAY(&fr->lo->arena, *n + 1, value);
    bool from = count && v->n > 1;
    __int128 start = from ? ing_front_int_of(&v->items[1]) : 0;
    if (from && v->items[1].kind != V_INT)
        return ing_front_fail_at(
            fr, at, ING_COMPILE, "add it to the index in the loop",
            "enumerate starts at a compile-time integer, not at %s",
            ing_front_describe(fr, &v->items[1]));
    for (uint32_t r = 0; *items && r < *n; r++) {
        value *row = ING_NEW_ARRAY(&fr->lo->arena, width, value);
        if (!row) break;
        for (uint32_t c = 0; c < width; c++)
            row[c] = !count   ? cols[c][r]
                     : c == 0 ? ing_front_int_from(start + r)
                              : cols[0][r];
        (*items)[r] = ing_front_seq(V_TUPLE, row, width);
    }
    return ING_OK;
}

bool ing_front_is_constant(const frame *fr, const value *v) {
    const ing_gate *g = fr->lo->gate;
    return fr->in_static && v->kind == V_ARRAY && v->gref && !v->arg &&
           g->ops->constant && g->ops->constant(g->self, v->gref);
}

/* An array that was found outside, with one axis of numbers: neither argument nor field. */
static bool is_sequence(const frame *fr, const value *v) {
    return v->kind == V_ARRAY && v->gref && !v->arg && v->n == 1 &&
           !ing_front_field_place(fr, v) &&
           ing_ir_type(fr->lo->mod, v->type)->elem < ING_DTYPE_N;
}

/* The elements of such an array. How many there are is asked now
 * and at each launch; what they are is read while the kernel runs. */
static ing_status array_items(frame *fr, ing_node at, const value *v, value **items,
                              uint32_t *n, bool *ok) {
    value count;
    ING_TRY(ing_front_derive(fr, at, v->gref, ING_DERIVE_LEN, 0, &count));
    *ok = count.kind == V_INT && count.i >= 0;
    if (*ok && count.i > MAX_ITEMS)
        return ing_front_fail_at(fr, at, ING_VALUE, "loop over its indices",
                                 "%s of more than %d items cannot be unpacked",
                                 ing_front_describe(fr, v), MAX_ITEMS);
    *n = *ok ? (uint32_t)count.i : 0;
    *items = ING_NEW_ARRAY(&fr->lo->arena, (size_t)*n + 1, value);
    for (uint32_t i = 0; *items && i < *n; i++) {
        value k = ing_front_int(i);
        ING_TRY(ing_front_array_element(fr, at, v, &k, 1, at, &(*items)[i]));
    }
    return ING_OK;
}

ing_status ing_front_items(frame *fr, ing_node at, const value *v, value **items,
                           uint32_t *n, bool *ok) {
    *ok = true;
    *n = 0;
    *items = NULL;
    if (v->kind == V_TUPLE || v->kind == V_LIST ||
        (v->kind == V_ITER && v->tag == ING_IN_PY_REVERSED)) {
        *items = v->items;
        *n = v->n;
    } else if (ing_front_is_tensor(fr, v)) {
        return ing_front_tensor_items(fr, at, v, items, n, ok);
    } else if (v->kind == V_SEEN &&
               (v->seen == ING_GATE_TUPLE || v->seen == ING_GATE_LIST)) {
        ING_TRY(seen_items(fr, at, v, items, n));
    } else if (v->kind == V_DICT || (v->kind == V_SEEN && v->seen == ING_GATE_DICT)) {
        value d = *v;
        ING_TRY(ing_front_count(fr, at, &d));
        *n = d.n;
        ING_TRY(ing_front_dict_part(fr, at, &d, DICT_KEYS, items));
    } else if (v->kind == V_SEEN && v->seen == ING_GATE_OBJECT &&
               (fr->in_static || v->from_static)) {
        value all;
        ING_TRY(ing_front_derive(fr, at, v->gref, ING_DERIVE_ITEMS, 0, &all));
        *ok = all.kind == V_SEEN;
        if (*ok) ING_TRY(seen_items(fr, at, &all, items, n));
    } else if (v->kind == V_SHAPE) {
        *n = v->n;
        *items = ING_NEW_ARRAY(&fr->lo->arena, v->n + 1, value);
        for (uint32_t i = 0; *items && i < v->n; i++)
            (*items)[i] = ing_front_rt(
                ing_ir_emit(&fr->b, ING_OP_DIM, ING_I32, v->inst, i, 0), ING_I32);
    } else if (v->kind == V_ITER && v->tag == ING_IN_PY_RANGE) {
        return range_items(fr, at, v, items, n, ok);
    } else if (v->kind == V_ITER &&
               (v->tag == ING_IN_PY_ENUMERATE || v->tag == ING_IN_PY_ZIP)) {
        return rows_items(fr, at, v, items, n, ok);
    } else if (ing_front_is_constant(fr, v)) {
        value all;
        ING_TRY(ing_front_derive(fr, at, v->gref, ING_DERIVE_ITEMS, 0, &all));
        *ok = all.kind == V_SEEN;
        if (*ok) ING_TRY(seen_items(fr, at, &all, items, n));
    } else if (is_sequence(fr, v)) {
        ING_TRY(array_items(fr, at, v, items, n, ok));
    } else {
        *ok = false;
    }
    if (*ok && *n && !*items) {
        *n = 0;
        return ing_fail(fr->lo->e, ING_MEMORY, "no memory while compiling a kernel");
    }
    return ING_OK;
}

enum { MAX_VECTOR = 64 }; /* vectors are unrolled */

ing_status ing_front_sequence_vector(frame *fr, ing_node at, value *v) {
    value *items;
    uint32_t n = 0;
    bool ok = false;
    if (!is_sequence(fr, v)) return ING_OK;
    ING_TRY(ing_front_items(fr, at, v, &items, &n, &ok));
    if (!ok || !n || n > MAX_VECTOR) return ING_OK;
    *v = ing_front_seq(V_TUPLE, items, n);
    v->tensor = true;
    return ING_OK;
}

/* The letters of a string, which is UTF-8; each ends with a null. */
static void letters(frame *fr, const value *v, value **items, uint32_t *n) {
    char *text = ing_arena_alloc(&fr->lo->arena, 2 * (size_t)v->n + 1);
    *items = ING_NEW_ARRAY(&fr->lo->arena, (size_t)v->n + 1, value);
    for (uint32_t i = 0; *items && text && i < v->n;) {
        uint32_t size = 1;
        while (i + size < v->n && ((unsigned char)v->s[i + size] & 0xc0) == 0x80)
            size++;
        memcpy(text, v->s + i, size);
        text[size] = 0;
        (*items)[(*n)++] = (value){.kind = V_STR, .s = text, .n = size};
        text += size + 1;
        i += size;
    }
    if (!text) *items = NULL;
}

ing_status ing_front_sequence(frame *fr, ing_node at, const value *v, value **items,
                              uint32_t *n, bool *ok) {
    if (v->kind != V_STR) return ing_front_items(fr, at, v, items, n, ok);
    *n = 0;
    *ok = true;
    letters(fr, v, items, n);
    if (*items) return ING_OK;
    return ing_fail(fr->lo->e, ING_MEMORY, "no memory while compiling a kernel");
}

ing_status ing_front_dtype(frame *fr, ing_node at, value *v, ing_dtype *out) {
    ING_TRY(ing_front_force(fr, at, v));
    int64_t t = 0;
    if (v->kind == V_DTYPE) {
        *out = v->dtype;
        return ING_OK;
    }
    if (v->kind == V_INTRINSIC && v->tag == ING_IN_PY_BOOL) {
        *out = ING_U1;
        return ING_OK;
    }
    if (v->kind == V_INTRINSIC &&
        (v->tag == ING_IN_PY_INT || v->tag == ING_IN_PY_FLOAT)) {
        ING_TRY(ing_front_config_get(
            fr, at, v->tag == ING_IN_PY_INT ? ING_SET_default_ip : ING_SET_default_fp,
            &t));
        *out = (ing_dtype)t;
        return ING_OK;
    }
    return ing_front_fail_at(
        fr, at, ING_TYPE, "use qd.i32, qd.f32, ..., or int, float, bool",
        "a dtype is needed here; this is %s", ing_front_describe(fr, v));
}

/* ---- signatures ----------------------------------------------------------------------------------------- */

/* `placed`: things are the same only when they are found at the same place. */
static ing_status thing_key(frame *fr, ing_node at, ing_gref ref, bool placed,
                            ing_hasher *h) {
    ing_hash128 key;
    GATE(fr, at, memo_key, ref, &key, fr->lo->e);
    ing_hasher_digest(h, 6, key);
    if (placed) ing_hasher_u64(h, 7, ing_front_place(fr, ref));
    return ING_OK;
}

ing_status ing_front_value_key(frame *fr, ing_node at, const value *v, ing_hasher *h) {
    ing_hasher_u64(h, 1, v->kind);
    switch ((value_kind)v->kind) {
    case V_BOOL:
    case V_INT:
    case V_FLOAT:
        ing_hasher_u64(h, 2, (uint64_t)v->dtype << 1 | v->wide);
        ing_hasher_u64(h, 3, (uint64_t)v->i); /* the bits of f share the place */
        break;
    case V_STR: ing_hasher_item(h, 3, v->s, v->n); break;
    case V_DTYPE: ing_hasher_u64(h, 3, v->dtype); break;
    case V_INTRINSIC: ing_hasher_u64(h, 3, v->tag); break;
    case V_TUPLE:
    case V_LIST:
    case V_DICT:
    case V_VIEW:
    case V_ITER:
        ing_hasher_u64(h, 4, (uint64_t)v->n << 1 | v->tensor);
        if (v->kind == V_ITER) ing_hasher_u64(h, 9, v->tag);
        for (uint32_t i = 0; i < v_children(v); i++)
            ING_TRY(ing_front_value_key(fr, at, &v->items[i], h));
        break;
    case V_BUNDLE:
        ing_hasher_u64(h, 4, (uint64_t)v->n << 1 | v->tensor);
        for (uint32_t i = 0; i < v->n; i++) {
            if (v->info) ing_hasher_str(h, 8, v->info->names[i]);
            ING_TRY(ing_front_force(fr, at, &v->items[i]));
            ING_TRY(ing_front_value_key(fr, at, &v->items[i], h));
        }
        break;
    case V_STRUCT:
        for (uint32_t i = 0; i < v->n; i++) {
            ing_hasher_str(h, 8, v->info->names[i]);
            ING_TRY(ing_front_value_key(fr, at, &v->items[i], h));
        }
        if (v->gref) ING_TRY(thing_key(fr, at, v->gref, true, h));
        break;
    case V_STRUCT_TYPE: ING_TRY(thing_key(fr, at, v->gref, true, h)); break;
    case V_RT:
    case V_TYPE:
    case V_ARRAY:
        ing_hasher_u64(h, 5, (uint64_t)v->type << 2 | (v->alt != 0) << 1 | v->clamp);
        break;
    case V_REF:
        ing_hasher_u64(h, 5, (uint64_t)v->type << 2 | v->clamp << 1 | v->shared);
        break;
    case V_SEEN:
    case V_FUNC: {
        bool placed = v->bound || (v->kind == V_SEEN && v->seen != ING_GATE_ENUM);
        ING_TRY(thing_key(fr, at, v->gref, placed, h));
        break;
    }
    default: break;
    }
    return ING_OK;
}
