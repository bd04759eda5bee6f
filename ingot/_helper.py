"""The helper process: turns LLVM IR text into object code.

It runs as a program of its own (`argv` gives the command line), because LLVM can end the
process that it is loaded into. The parent is src/compile/helper.c, where the wire format is
written down. This file is read by path and imports nothing of ingot, so that starting it
costs an interpreter and llvmlite, no more. It must never write to descriptor 3 anything
but answers.
"""

import os
import sys

MAGIC = b"INGH"
VERSION = 1
COMPILE, OBJECT, ERROR, READY = 1, 2, 3, 4
HEADER = "<4sHHII"
HEADER_BYTES = 16
CHANNEL = 3
MAX_BYTES = 64 << 20
LONG_TEXT = 300_000
SINGLE = '"ingot-stores"="single"'
FEW_PAIRS = '"ingot-pairs"="few"'
IDLE_SECONDS = 60.0
# Of processor time that LLVM may take with its vectorisers, by the bytes of a text: a tenth is usual for 400,000 bytes,
# a thousandth for 10,000. Branches that are the same in each iteration take the loop vectoriser exponential time: 30 of
# them in a row, as in a sort of 6 numbers, minutes.
MOST_SECONDS, BYTES_A_SECOND = 20, 5_000

MISSING = "compiling needs llvmlite: pip install llvmlite"

EXERCISE = """
define void @f(ptr %a, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %j, %loop ]
  %p = getelementptr float, ptr %a, i64 %i
  %x = load float, ptr %p
  %y = fmul contract float %x, %x
  store float %y, ptr %p
  %j = add nsw i64 %i, 1
  %c = icmp slt i64 %j, %n
  br i1 %c, label %loop, label %done
done:
  ret void
}
"""

# Runs this file without importing the package around it; paths in the rest of argv are folders that
# are searched after the standard library.
BOOTSTRAP = (
    "import sys\n"
    "sys.path += [a for a in sys.argv[2:] if a[:1] == '/']\n"
    "g = {'__name__': 'ingot_helper', '__file__': sys.argv[1]}\n"
    "with open(sys.argv[1], 'rb') as f: exec(compile(f.read(), sys.argv[1], 'exec'), g)\n"
    "g['main']()\n"
)


def argv():
    """The command line of a helper of this interpreter; used in the parent."""
    python = os.environ.get("INGOT_HELPER_PYTHON") or sys.executable
    frozen = getattr(sys, "frozen", False) and not os.environ.get("INGOT_HELPER_PYTHON")
    if not python or frozen:
        raise RuntimeError(
            "compiling needs a Python interpreter and this program does not tell which: "
            "set INGOT_HELPER_PYTHON to the path of one that has llvmlite"
        )
    return [python, "-I", "-c", BOOTSTRAP, os.path.abspath(__file__), *llvmlite_dirs()]


def llvmlite_dirs():
    """The folder that holds the parent's llvmlite, found without importing it."""
    # Not importlib.util: an import under way in one thread would hang a child forked by another.
    finder = sys.modules["_frozen_importlib_external"].PathFinder
    try:
        spec = finder.find_spec("llvmlite")
    except (ImportError, ValueError):
        spec = None
    places = spec.submodule_search_locations if spec else None
    return [os.path.dirname(os.path.abspath(p)) for p in places or ()]


# ---- LLVM -----------------------------------------------------------------------------


def bound_time(seconds):
    """From now on, so many more seconds of processor time end the process (SIGXCPU); None: no number does."""
    import resource

    used = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    soft = hard if seconds is None else int(used) + 1 + seconds
    if seconds is not None and hard != resource.RLIM_INFINITY:
        soft = min(soft, hard)
    resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))


class Compiler:
    """LLVM with the options that hold for every module; made at the first request."""

    def __init__(self):
        import llvmlite.binding as llvm

        self.llvm = llvm
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        # Strength reduction of loops costs a third of the compile time of stencils and
        # gives no faster code on x86-64.
        llvm.set_option("ingot", "-disable-lsr")
        # The scheduler compares each load and store of a block with all others, up to so many
        # (1,000): 1,000 lines that update an array take it 1.4 s, now 0.2 s.
        llvm.set_option("ingot", "-dag-maps-huge-region=200")
        # How long a row of instructions is put in order for a tree of scalars that may become a vector: the
        # rest of a loop over cells of 9 numbers took 130 of 190 ms (100,000), now 46.
        llvm.set_option("ingot", "-slp-schedule-budget=2000")
        # Members of cells that a loop leaves out, as in `v[i][1] -= g` of AOS fields, become masked
        # accesses of whole rows: 8,192 particles take 5.4 us; with scattered stores 19.
        llvm.set_option("ingot", "-enable-masked-interleaved-mem-accesses")
        # What is left of a row after vectors of 8 is done in shorter ones: rows of 46 in a stencil take
        # a tenth less time, compiling 3 % more.
        llvm.set_option("ingot", "-epilogue-vectorization-minimum-VF=8")
        # Whether a loop's arrays lie apart is asked right before it: asked for all rows at once, rows of one
        # array that are read and written never do. LU of 200 x 200: 1.03 ms, now 0.30; rows of 16 as before.
        llvm.set_option("ingot", "-hoist-runtime-checks=0")
        # Selects that wait for each other become branches, which data that nobody foresees make slow: a binary
        # search in 4,096 numbers took 3.1 ms, now 1.1, distances of edits of words 1.9, now 1.0.
        if llvm.get_default_triple().startswith(("x86_64", "i")):  # elsewhere LLVM ends the process
            llvm.set_option("ingot", "-x86-cmov-converter=0")
        self.machines = {}
        self.long = self.single = self.few = False

    def machine(self, triple, cpu, features, level):
        key = triple, cpu, features, level
        if key not in self.machines:
            target = self.llvm.Target.from_triple(triple)
            self.machines[key] = target.create_target_machine(
                cpu=cpu, features=features, opt=level, reloc="pic", codemodel="small",
            )
        return self.machines[key]

    def settle(self, long):
        """What LLVM leaves out in long texts, where it takes time with the square of their length.
        Instructions that move down a row of blocks, to the only one that uses them: 5 of 6 s for
        100 calls of functions that can stop. Deep trees of scalars that become vectors: 15 of
        16 s for 1,000 products of matrices in a row. How far and through how many blocks is looked
        for the store that a load reads: 27.1 s for all kernels of a simulator become 23.8."""
        if long != self.long:
            self.llvm.set_option("ingot", f"-instcombine-code-sinking={int(not long)}")
            self.llvm.set_option("ingot", f"-slp-recursion-max-depth={6 if long else 12}")
            self.llvm.set_option("ingot", f"-memdep-block-scan-limit={25 if long else 100}")
            self.llvm.set_option("ingot", f"-memdep-block-number-limit={50 if long else 200}")
            self.long = long

    def store(self, single):
        """Whether what loops write at every m-th place is stored one by one (PLAN8 in src/gen/llvm_plan.c)."""
        if single != self.single:
            self.llvm.set_option("ingot", f"-enable-masked-interleaved-mem-accesses={int(not single)}")
            self.single = single

    def pair(self, few):
        """What a vector of a few scalars has to save, in instructions: more in parts of long tasks (PART5 in
        src/gen/llvm_parts.c). Everywhere, 6 would cost a cellular automaton on bytes and a search for the least a sixth."""
        if few != self.few:
            self.llvm.set_option("ingot", f"-slp-threshold={6 if few else 0}")
            self.few = few

    def ident(self, options, level):
        """Who makes the code and for which machine: kept in the image, part of no key."""
        import llvmlite

        version = ".".join(map(str, self.llvm.llvm_version_info))
        text = (f"{options.get('cpu')} O{level} fast_math={options.get('fast')} "
                f"llvmlite {llvmlite.__version__} LLVM {version}")
        return f'\n!llvm.ident = !{{!4000000000}}\n!4000000000 = !{{!"{text}"}}\n'

    def exercise(self):
        """What LLVM makes once per process is made by a small loop."""
        triple = self.llvm.get_default_triple()
        self.compile({"triple": triple, "cpu": "x86-64-v3" if triple.startswith("x86") else ""}, EXERCISE)

    def compile(self, options, text):
        if "plain" not in options:
            slow = 5 if options.get("level") == "3" else 1  # long loops are vectorised too
            bound_time(slow * (MOST_SECONDS + len(text) // BYTES_A_SECOND))
        try:
            return self.make(options, text)
        finally:
            bound_time(None)

    def make(self, options, text):
        self.settle(len(text) >= LONG_TEXT)
        self.store(SINGLE in text)
        self.pair(FEW_PAIRS in text)
        level = min(max(int(options.get("level", "2")), 0), 3)
        machine = self.machine(options["triple"], options["cpu"], options.get("features", ""), level)
        module = self.llvm.parse_assembly(text + self.ident(options, level))
        module.verify()
        tuning = self.llvm.create_pipeline_tuning_options(speed_level=level)
        plain = "plain" in options  # what failed before: the vectorisers are what LLVM asserts most of
        tuning.loop_vectorization = level > 0 and not plain
        # Costs nothing measurable and makes one instruction of the members of a vector.
        tuning.slp_vectorization = level > 1 and not plain
        # A pass builder serves one module: the second run of one aborts.
        builder = self.llvm.create_pass_builder(machine, tuning)
        builder.getModulePassManager().run(module, builder)
        emit = options.get("emit")  # texts for people
        if emit:
            return (str(module) if emit == "llvm" else machine.emit_assembly(module)).encode()
        return machine.emit_object(module)


def prepare(state):
    """Loads LLVM before the first request comes: `state` becomes the compiler, or why there is none."""
    try:
        state.append(Compiler())
    except ImportError as e:
        missing = (e.name or "").split(".")[0] == "llvmlite"
        state.append(MISSING if missing else f"llvmlite cannot be loaded: {e}")
    except Exception as e:
        state.append(f"LLVM cannot be started: {type(e).__name__}: {e}")
    return isinstance(state[0], Compiler)


def answer(state, options, body):
    """Kind and body of the reply to one request."""
    if isinstance(state[0], str):
        return ERROR, state[0]
    try:
        words = dict(w.partition("=")[::2] for w in options.decode().split())
        return OBJECT, state[0].compile(words, body.decode())
    except Exception as e:
        return ERROR, f"LLVM refused the code: {type(e).__name__}: {e}"


# ---- the process ----------------------------------------------------------------------


def read_exactly(n):
    parts = []
    while n:
        part = os.read(CHANNEL, min(n, 1 << 20))
        if not part:
            raise EOFError
        parts.append(part)
        n -= len(part)
    return b"".join(parts)


def write_all(data):
    view = memoryview(data)
    while view:
        view = view[os.write(CHANNEL, view) :]


def read_requests(queue):
    """Runs in a thread of its own, so that the end of the parent is seen while LLVM works
    (it runs without the interpreter lock); then there is nothing left to do."""
    from struct import unpack

    try:
        while True:
            magic, version, kind, n, m = unpack(HEADER, read_exactly(HEADER_BYTES))
            if (magic, version, kind) != (MAGIC, VERSION, COMPILE) or n + m > MAX_BYTES:
                os._exit(3)
            queue.put((read_exactly(n), read_exactly(m)))
    except (EOFError, OSError):
        os._exit(0)


def close_inherited():
    try:
        limit = max(int(fd) for fd in os.listdir("/proc/self/fd")) + 1
    except (OSError, ValueError):
        limit = 1024
    os.closerange(CHANNEL + 1, limit)


def work(state):
    """Answers requests until there are none for a while, or the other end is gone."""
    import queue
    import threading
    from struct import pack

    requests = queue.SimpleQueue()
    threading.Thread(target=read_requests, args=(requests,), daemon=True).start()
    while True:
        try:
            options, body = requests.get(timeout=IDLE_SECONDS)
        except queue.Empty:
            os._exit(0)
        kind, reply = answer(state, options, body)
        if isinstance(reply, str):
            reply = reply.encode("utf-8", "replace")
        if len(reply) > MAX_BYTES:
            kind, reply = ERROR, b"the compiled code is larger than 64 MiB"
        try:
            write_all(pack(HEADER, MAGIC, VERSION, kind, 0, len(reply)) + reply)
        except OSError:
            os._exit(0)


def serve(state, spec):
    """Leaves a server behind if there is none, for the processes to come (_server.py)."""
    path = os.path.join(os.path.dirname(os.path.abspath(sys.argv[1])), "_server.py")
    server = {"__name__": "ingot_server", "__file__": path}
    try:
        with open(path, "rb") as f:
            exec(compile(f.read(), path, "exec"), server)
        server["leave_behind"](spec, state[0].exercise, lambda: greet(state))
    except OSError:
        pass


def greet(state):
    """In a process that the server forked for one connection, which is the channel."""
    from struct import pack

    write_all(pack(HEADER, MAGIC, VERSION, READY, 0, 0))
    work(state)


def main():
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    close_inherited()
    state = []
    spec = [a[7:] for a in sys.argv[2:] if a.startswith("server ")]
    if prepare(state) and spec:
        serve(state, spec[0])
    work(state)
