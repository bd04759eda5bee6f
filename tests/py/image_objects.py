"""Writes the relocatable objects that the C tests of src/image link, made by llvmlite.

    image_objects.py <directory>

One file <name>.o per entry of OBJECTS. Exit status 77 when llvmlite is not installed. In
each, `ing_task` treats its first argument as the test's own buffer.
"""

import pathlib
import sys

X86, ARM = "x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"

# Every kind of section and of reference at once: constants, a jump table, a table of
# functions, zeroed data, imports called and imports whose address is taken.
KERNEL = r"""
@tab = internal constant [4 x ptr] [ptr @f1, ptr @f2, ptr @f1, ptr @f2]
@acc = internal global i64 0
@words = internal unnamed_addr constant [4 x i32] [i32 1, i32 5, i32 3, i32 77]
declare double @sin(double)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
define internal double @f1(double %x) noinline {
  %r = fmul double %x, 3.2500000001
  ret double %r
}
define internal double @f2(double %x) noinline {
  %r = call double @sin(double %x)
  ret double %r
}
define i32 @ing_task(ptr %io, i64 %begin, i64 %end, i64 %chunk) uwtable {
  call void @llvm.memset.p0.i64(ptr %io, i8 7, i64 %chunk, i1 false)
  %i = and i64 %begin, 3
  %p = getelementptr [4 x ptr], ptr @tab, i64 0, i64 %i
  %f = load ptr, ptr %p
  %x = sitofp i64 %end to double
  %v = call double %f(double %x)
  store double %v, ptr %io
  %n = load i64, ptr @acc
  %n1 = add i64 %n, 1
  store i64 %n1, ptr @acc
  %io1 = getelementptr i64, ptr %io, i64 1
  store i64 %n1, ptr %io1
  %io2 = getelementptr i64, ptr %io, i64 2
  store ptr @sin, ptr %io2
  %io3 = getelementptr i64, ptr %io, i64 3
  %q = getelementptr [4 x i32], ptr @words, i64 0, i64 %i
  %w = load i32, ptr %q
  switch i32 %w, label %other [
    i32 0, label %a0
    i32 1, label %a1
    i32 2, label %a2
    i32 3, label %a3
    i32 4, label %a4
    i32 5, label %a5 ]
a0: store i64 10, ptr %io3
  ret i32 100
a1: store i64 11, ptr %io3
  ret i32 12
a2: store i64 19, ptr %io3
  ret i32 7
a3: store i64 13, ptr %io1
  ret i32 18
a4: store i64 14, ptr %io3
  ret i32 -100
a5: %z = call double @f2(double 1.0)
  store double %z, ptr %io3
  ret i32 10
other: ret i32 %w
}
"""

# f16 at a level without F16C: conversions are calls of our helpers.
HALF = r"""
define i32 @ing_task(ptr %io, i64 %begin, i64 %end, i64 %chunk) {
entry:
  %some = icmp slt i64 %begin, %end
  br i1 %some, label %loop, label %done
loop:
  %i = phi i64 [ %begin, %entry ], [ %next, %loop ]
  %row = getelementptr { float, double, i16, i16, float, float }, ptr %io, i64 %i
  %pd = getelementptr i8, ptr %row, i64 8
  %ph = getelementptr i8, ptr %row, i64 16
  %ph2 = getelementptr i8, ptr %row, i64 18
  %pb = getelementptr i8, ptr %row, i64 20
  %pr = getelementptr i8, ptr %row, i64 24
  %f = load float, ptr %row
  %d = load double, ptr %pd
  %h = fptrunc float %f to half
  %h2 = fptrunc double %d to half
  store half %h, ptr %ph
  store half %h2, ptr %ph2
  %back = fpext half %h to float
  store float %back, ptr %pb
  %sum = fadd half %h, %h2
  %sumf = fpext half %sum to float
  store float %sumf, ptr %pr
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %end
  br i1 %more, label %loop, label %done
done:
  ret i32 0
}
"""

BF16 = r"""
define i32 @ing_task(ptr %io, i64 %begin, i64 %end, i64 %chunk) {
  %f = load float, ptr %io
  %h = fptrunc float %f to bfloat
  %p = getelementptr i8, ptr %io, i64 4
  store bfloat %h, ptr %p
  %pd = getelementptr i8, ptr %io, i64 8
  %d = load double, ptr %pd
  %h2 = fptrunc double %d to bfloat
  %p2 = getelementptr i8, ptr %io, i64 6
  store bfloat %h2, ptr %p2
  ret i32 0
}
"""

VECTOR = r"""
declare <4 x double> @_ZGVdN4v_sin(<4 x double>)
define i32 @ing_task(ptr %io, i64 %begin, i64 %end, i64 %chunk) {
  %v = load <4 x double>, ptr %io, align 8
  %s = call <4 x double> @_ZGVdN4v_sin(<4 x double> %v)
  store <4 x double> %s, ptr %io, align 8
  ret i32 0
}
"""

# Calls that no one wrote: wide division, fmod, fma without the instruction.
RUNTIME = r"""
declare double @llvm.fma.f64(double, double, double)
define i32 @ing_task(ptr %io, i64 %begin, i64 %end, i64 %chunk) {
  %a = load i128, ptr %io, align 16
  %pb = getelementptr i128, ptr %io, i64 1
  %b = load i128, ptr %pb, align 16
  %q = sdiv i128 %a, %b
  %r = urem i128 %a, %b
  store i128 %q, ptr %io, align 16
  store i128 %r, ptr %pb, align 16
  %pd = getelementptr i128, ptr %io, i64 2
  %x = load double, ptr %pd
  %m = frem double %x, 3.0
  %f = call double @llvm.fma.f64(double %m, double %m, double %x)
  store double %f, ptr %pd
  ret i32 0
}
"""

# Symbols with default visibility are reached through the GOT even in their own object.
OWN_GOT = r"""
@shared = global [2 x i64] [i64 40, i64 2]
@pointer = global ptr getelementptr (i64, ptr @shared, i64 1)
define i64 @adds(i64 %x) noinline {
  %a = load i64, ptr @shared
  %p = load ptr, ptr @pointer
  %b = load i64, ptr %p
  %s = add i64 %a, %b
  %r = add i64 %s, %x
  ret i64 %r
}
define i32 @ing_task(ptr %io, i64 %begin, i64 %end, i64 %chunk) {
  store ptr @adds, ptr %io
  %r = call i64 @adds(i64 %begin)
  %t = trunc i64 %r to i32
  ret i32 %t
}
"""

# One load and store of each width, so that every scaled low-12 relocation appears.
WIDTHS = r"""
@g8 = internal global [5 x i8] zeroinitializer
@b8 = internal global i8 0
@g16 = internal global i16 0
@g32 = internal global i32 0
@g64 = internal global i64 0
@g128 = internal global <2 x i64> zeroinitializer
@shared = global i64 7
@tab = internal constant [2 x ptr] [ptr @callee, ptr getelementptr (i8, ptr @g8, i64 3)]
declare double @sin(double)
declare double @exp(double)
define internal i64 @callee(i64 %x) noinline uwtable {
  %r = mul i64 %x, 3
  ret i64 %r
}
define i32 @ing_task(ptr %io, i64 %begin, i64 %end, i64 %chunk) uwtable {
  %p8 = getelementptr i8, ptr @g8, i64 1
  %a = load i8, ptr %p8
  %b = load i16, ptr @g16
  %c = load i32, ptr @g32
  %d = load i64, ptr @g64
  %e = load <2 x i64>, ptr @g128
  %a1 = add i8 %a, 1
  store i8 %a1, ptr @g8
  %old = load i8, ptr @b8
  %new = add i8 %old, 1
  store i8 %new, ptr @b8
  %b1 = add i16 %b, 1
  store i16 %b1, ptr @g16
  %c1 = add i32 %c, 1
  store i32 %c1, ptr @g32
  %d1 = call i64 @callee(i64 %d)
  store i64 %d1, ptr @g64
  %e1 = add <2 x i64> %e, <i64 12345678901, i64 98765432109>
  store <2 x i64> %e1, ptr @g128
  %s = load i64, ptr @shared
  %i = and i64 %begin, 1
  %tp = getelementptr [2 x ptr], ptr @tab, i64 0, i64 %i
  %t = load ptr, ptr %tp
  store ptr %t, ptr %io
  %x = sitofp i64 %s to double
  %y = call double @sin(double %x)
  store volatile double %y, ptr %io
  store volatile ptr @exp, ptr %io
  %z = tail call i32 @last(double %y)
  ret i32 %z
}
define internal i32 @last(double %y) noinline uwtable {
  %r = call double @jump(double %y)
  %t = fptosi double %r to i32
  ret i32 %t
}
define internal double @jump(double %y) noinline uwtable {
  %r = tail call double @exp(double %y)
  ret double %r
}
"""

TASK = "define i32 @ing_task(ptr %io, i64 %begin, i64 %end, i64 %chunk) "
STATIC = "@g = internal global i64 0\n" + TASK + (
    "{ %p = getelementptr i32, ptr @g, i64 %begin\n %r = load i32, ptr %p\n ret i32 %r }"
)
UNKNOWN = "declare i32 @no_such_function(i64)\n" + TASK + (
    "{ %r = call i32 @no_such_function(i64 %begin)\n ret i32 %r }"
)
COMMON = "@c = common global i32 0\n" + TASK + "{ %r = load i32, ptr @c\n ret i32 %r }"
TLS = "@t = thread_local global i32 5\n" + TASK + "{ %r = load i32, ptr @t\n ret i32 %r }"
CTORS = (
    "@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] "
    "[{ i32, ptr, ptr } { i32 65535, ptr @start, ptr null }]\n"
    "define internal void @start() { ret void }\n" + TASK + "{ ret i32 0 }"
)
NO_ENTRY = "define i32 @other() { ret i32 0 }"
PLAIN = TASK + "{ ret i32 41 }"

# name: (text, triple, cpu, relocation model)
OBJECTS = {
    "kernel": (KERNEL, X86, "x86-64-v2", "pic"),
    "half": (HALF, X86, "x86-64-v2", "pic"),
    "bf16": (BF16, X86, "x86-64-v2", "pic"),
    "vector": (VECTOR, X86, "x86-64-v3", "pic"),
    "runtime": (RUNTIME, X86, "x86-64-v2", "pic"),
    "own_got": (OWN_GOT, X86, "x86-64-v2", "pic"),
    "plain": (PLAIN, X86, "x86-64-v2", "pic"),
    "static": (STATIC, X86, "x86-64-v2", "static"),
    "unknown": (UNKNOWN, X86, "x86-64-v2", "pic"),
    "common": (COMMON, X86, "x86-64-v2", "pic"),
    "tls": (TLS, X86, "x86-64-v2", "pic"),
    "ctors": (CTORS, X86, "x86-64-v2", "pic"),
    "no_entry": (NO_ENTRY, X86, "x86-64-v2", "pic"),
    "arm_kernel": (KERNEL, ARM, "generic", "pic"),
    "arm_widths": (WIDTHS, ARM, "generic", "pic"),
}


def compile_object(llvm, text, triple, cpu, reloc):
    target = llvm.Target.from_triple(triple)
    machine = target.create_target_machine(cpu=cpu, opt=2, reloc=reloc, codemodel="small")
    module = llvm.parse_assembly(f'target triple = "{triple}"\n{text}')
    module.data_layout = str(machine.target_data)
    module.verify()
    return machine.emit_object(module)


def main(argv):
    try:
        import llvmlite.binding as llvm
    except ImportError:
        return 77
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    out = pathlib.Path(argv[1])
    for name, row in OBJECTS.items():
        (out / f"{name}.o").write_bytes(compile_object(llvm, *row))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
