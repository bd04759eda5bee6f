"""What the explanation of each case of tests/py/mutations.py says: the cause that the case
injects. Cases that make no second compile are not here."""

WANT = {
    'global int':
        'N: 3 -> 5',
    'global float':
        'N: 0.5 -> 0.25',
    'int to float':
        'N: 1 -> 1.0',
    'float to bool':
        'N: 1.0 -> True',
    'sign of zero':
        'N: 0.0 -> -0.0',
    'imported name':
        'N: 3 -> 4',
    'module attribute':
        'lib.N: 3 -> 4',
    'attribute of a module in a module':
        'lib.other.N: 3 -> 4',
    'module __getattr__':
        'lib.N: 3 -> 4',
    'module attribute over __getattr__':
        'lib.N: 3 -> 4',
    'builtin shadowed':
        'max: nothing -> a func',
    'closure cell':
        'n: 3 -> 7',
    'type in a closure':
        'N: 1 -> 1.0',
    'closure or module':
        'source of k() in case_closure_or_module.py changed',
    'global of a func':
        'N, read by f: 3 -> 4',
    'closure of a func':
        'n, read by f: 3 -> 4',
    'constant in the text':
        'source of k() in case_constant_in_the_text.py changed',
    'type of a constant in the text':
        'source of k() in case_type_of_a_constant_in_the_text.py changed',
    'folded constant':
        'source of k() in case_folded_constant.py changed',
    'folded constant, other digits':
        'source of k() in case_folded_constant__other_digits.py changed',
    'operator':
        'source of k() in case_operator.py changed',
    'loop bound':
        'source of k() in case_loop_bound.py changed',
    'local annotation':
        'source of k() in case_local_annotation.py changed',
    'local annotation by name':
        'T: i32 -> f32',
    'order of parameters':
        'source of k() in case_order_of_parameters.py changed',
    'callee in another file':
        'source of f() in case_callee_in_another_file_lib.py changed',
    'callee of a callee':
        'source of g() in case_callee_of_a_callee_lib2.py changed',
    'func of equal name':
        'h: f() in case_func_of_equal_name.py -> g() in case_func_of_equal_name.py',
    'string compared':
        "S: 'x' -> 'y'",
    'default of a func':
        'source of f() in case_default_of_a_func.py changed',
    'default of a func, of its function':
        'source of g() in case_default_of_a_func__of_its_function.py changed',
    'keyword default of a func':
        'source of f() in case_keyword_default_of_a_func.py changed',
    'keyword default of a func, in place':
        'source of f() in case_keyword_default_of_a_func__in_place.py changed',
    'type of a default':
        'source of f() in case_type_of_a_default.py changed',
    'default of a method':
        'source of f() in case_default_of_a_method.py changed',
    'default of a kernel, at launch':
        'source of k() in case_default_of_a_kernel__at_launch.py changed',
    'keyword default of a kernel':
        'source of k() in case_keyword_default_of_a_kernel.py changed',
    'default of a func by value':
        'default of x of f: 3 -> 4',
    'annotation of a func by value':
        'annotation of x of f: i32 -> f32',
    'default of a kernel':
        'source of k() in case_default_of_a_kernel.py changed',
    'default of a kernel by value':
        'argument n: 3 -> 4',
    'annotation of a scalar':
        'annotation of x: i32 -> f32',
    'return annotation':
        'source of k() in case_return_annotation.py changed',
    'template value':
        'argument n: 3 -> 4',
    'type of a template value':
        'argument N: 1 -> 1.0',
    'dtype of an argument':
        'argument a: f32 1-d -> i32 1-d',
    'dimensions of an argument':
        'argument a: f32 1-d -> f32 2-d',
    'None or a value':
        'argument n: None -> 4',
    'class attribute':
        'C.n: 3 -> 4',
    'inherited attribute':
        'C.n: 3 -> 4',
    'attribute that hides an inherited one':
        'C.n: 3 -> 4',
    'attribute of an object':
        'c.n: 3 -> 4',
    'object replaced':
        'c.n: 3 -> 4',
    'attribute at depth':
        'c.a.b.n: 3 -> 4',
    'slot':
        'c.n: 3 -> 4',
    'property':
        'c.n: 6 -> 8',
    '__getattr__':
        'c.n: 3 -> 4',
    'attribute of a template object':
        'c.n: 3 -> 4',
    'method of a template object':
        'source of f() in case_method_of_a_template_object.py changed',
    'member read by a kernel method':
        'self.n: 3 -> 4',
    'member of a frozen dataclass':
        'c.n: 3 -> 4',
    'default in a dataclass':
        'c.n: 3 -> 4',
    'named tuple':
        'c.n: 3 -> 4',
    'enum value in another file':
        'E.X: E.X (3) -> E.X (4)',
    'enum value by attribute':
        'E.X.value: 0.5 -> 0.25',
    'order of an enum':
        'E.X.value: 1 -> 2',
    'member of an enum':
        'V: E.X (3) -> E.Y (4)',
    'enum member or its number':
        'V: E.X (3) -> 4',
    'item of a list':
        'L[1]: 3 -> 4',
    'item of a tuple':
        'L[1]: 3 -> 4',
    'item of a dict':
        "L['x']: 3 -> 4",
    'item of a dict by number':
        'L[7]: 3 -> 4',
    'type of an item':
        'L[0]: 1 -> 1.0',
    'item at depth':
        "L['x'][0][1]: 3 -> 4",
    'length of a list':
        'L: a list of length 2 -> a list of length 3',
    'static loop over a list':
        'L: a list of length 2 -> a list of length 3',
    'static loop over a tuple':
        'L[1]: 2 -> 3',
    'static range':
        'N: 3 -> 4',
    'static if':
        'FLAG: True -> 1',
    'static if, other way':
        'FLAG: True -> False',
    'dtype of a captured array':
        't: f32 1-d -> i32 1-d',
    'dimensions of a captured array':
        't: f32 1-d -> f32 2-d',
    'dtype by name':
        'T: i32 -> f32',
    'type of a NumPy scalar':
        'N: i32 1 -> f64 1.0',
    'default_fp':
        'setting default_fp: f32 -> f64',
    'default_ip':
        'setting default_ip: i32 -> i64',
    'debug':
        'setting debug: False -> True',
    'check_out_of_bound':
        'setting check_out_of_bound: False -> True',
    'fast_math':
        'setting fast_math: True -> False',
    'text of an assertion':
        'source of k() in case_text_of_an_assertion.py changed',
    'type of a member':
        'S: struct {x: f64, v: vec2 f64, inner: struct} -> struct {x: i32, v: vec2 f64, inner: struct}',
    'size of a vector in a struct':
        'S: struct {x: f64, v: vec2 f64, inner: struct} -> struct {x: f64, v: vec3 f64, inner: struct}',
    'dtype of a vector in a struct':
        'S: struct {x: f64, v: vec2 f64, inner: struct} -> struct {x: f64, v: vec2 i32, inner: struct}',
    'method of a struct':
        'source of sum() in case_method_of_a_struct.py changed',
    'method of a struct in a struct':
        'source of twice() in case_method_of_a_struct_in_a_struct.py changed',
    'global of a method':
        "N, read by S['sum']: 1 -> 2",
    'order of members':
        'S: struct {p: f64, q: f64} -> struct {q: f64, p: f64}',
    'another type with other methods':
        "S['f']: one() in case_another_type_with_other_methods.py -> two() in case_another_type_with_other_methods.py",
    'member of a captured struct':
        'S.x: 3 -> 4',
    'captured struct as a whole':
        "S._entries['x']: 3 -> 4",
    'vector of a captured struct':
        "S._entries['v']._entries[0]: 3 -> 4",
    'method of a captured struct':
        'source of f() in case_method_of_a_captured_struct.py changed',
    'annotation of a struct parameter':
        'annotation of s: struct {x: f64} -> struct {x: i32}',
    'struct result':
        'return annotation: struct {x: f64, y: i32} -> struct {x: i32, y: i32}',
    'order of a dict':
        "D, key number 0: 'x' -> 'y'",
    'class of an object':
        'c.n: 3 -> 4',
    'bases of a class':
        'C.n: 3 -> 4',
    'attribute of a metaclass':
        'C.n: 3 -> 4',
    'dictionary of an object':
        'c.n: 3 -> 4',
    'state of a descriptor':
        'c.n: 3 -> 4',
    '__getattribute__':
        'c.n: 3 -> 4',
    'name of a module rebound':
        'math.half: 0.5 -> 0.25',
    'name in builtins':
        'ingot_test_n: 3 -> 4',
    'name that hides a builtin one':
        'ingot_test_m: nothing -> 4',
    'enum of equal names':
        'E.X: E.X (3) -> E.X (4)',
    'list in a tuple':
        'T[0][1]: 3 -> 4',
    'dict in a dict':
        "T['a']['b']: 3 -> 4",
    'ordered dict':
        "T['a']: 3 -> 4",
    'last item':
        'T: a list of length 2 -> a list of length 3',
    'code of a Python function':
        'source of f() in case_code_of_a_Python_function.py changed',
    'default of a Python function':
        'source of f() in case_default_of_a_Python_function.py changed',
    'keyword default of a Python function':
        'source of f() in case_keyword_default_of_a_Python_function.py changed',
    'Python function of equal text':
        'f(): 3 -> 4',
    'large unsigned':
        'N: 9223372036854775808 -> 9223372036854773760',
    'method of text':
        'S.find changed',
    'method of text that gives a list':
        'S.split changed',
    'method of text with a list':
        "S.join(...): 'a--b' -> 'a--b--c'",
    'method of literal text with a text':
        "S: ',' -> 'b'",
    'method of a number':
        'N.bit_length changed',
    'method of a tuple that holds a list':
        'len(T[1]): 1 -> 2',
    'class method of int':
        'B changed',
    'method of a list':
        'L[0]: 9 -> 5',
    'method of a set that grows':
        'X.issubset([1, 2, 3]): True -> False',
    'set of a list':
        'len(set(...)): 1 -> 2',
    'dict of keywords':
        'N changed',
    'partial':
        'p(2): 32 -> 42',
    'keywords of a partial':
        'p(2): 23 -> 24',
    'list in a partial':
        'p(): 3 -> 4',
    'cached function':
        'c(2): 5 -> 6',
    'argument of a cached function':
        'N: 3 -> 4',
    'state of an object that is called':
        'c(2): 5 -> 6',
    '__call__ that is assigned':
        'c(): 3 -> 4',
    'object of a class':
        'C(2).n: 5 -> 6',
    'default of a dataclass':
        'C(a=1).b: 3 -> 4',
    'class that is rebound':
        'C: P -> Q',
    'member of an enum by value':
        'N: 1 -> 2',
    'replace of a dataclass':
        'c changed',
    'sum of an array':
        'X.sum(): i64 5 -> i64 6',
    'list of an array':
        'X.tolist()[0]: 3 -> 4',
    'function of an array':
        'np.max(...): i64 3 -> i64 4',
    'function of an array with a keyword':
        'np.sum(..., axis=0)[0]: i64 6 -> i64 7',
    'list and a list of its own':
        'len(L): 2 -> 3',
    'two lists':
        'len(K): 1 -> 2',
    'two tuples':
        'len(T): 2 -> 3',
    'list that is repeated':
        'L[0]: 3 -> 4',
    'list repeated a number of times':
        'N: 3 -> 4',
    'text that is repeated':
        "S: 'ab' -> 'xxx'",
    'loop over a sum of lists':
        'len(L): 2 -> 3',
    'item of a range':
        'N: 3 -> 4',
    'item of a range of a length':
        'len(L): 2 -> 3',
    'dict of a zip':
        'V[0]: 3 -> 4',
    'keys of a dict of a zip':
        "K[0]: 'a' -> 'c'",
    'set of a range':
        'N: 3 -> 4',
    'itemgetter':
        'g(...): 3 -> 4',
    'itemgetter that is rebound':
        'g(...): 3 -> 4',
    'itemgetter that is made':
        "operator.itemgetter('a')(...): 3 -> 4",
    'itemgetter of two':
        'operator.itemgetter(0, 1)(...)[0]: 3 -> 4',
    'attrgetter':
        "operator.attrgetter('n')(...): 3 -> 4",
    'array that is made':
        'N: 3 -> 4',
    'extent of an array':
        'X.size: 3 -> 4',
    'method with a list of its own':
        'c.f([1]) changed',
    'list beside a list of its own':
        "f(..., dict('a', (0, 1))) changed",
    'list of its own that holds a value':
        'N: 3 -> 4',
    'mutable result for a list of its own':
        'f([1])[0]: 3 -> 4',
    'keyword of a Python function':
        'f(1, y=...) changed',
    'keyword that is a number':
        'N changed',
}
