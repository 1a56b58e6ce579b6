"""Graphs of Python code: a function's source is evaluated once beside its real arguments, and what operators do is recorded.

Nothing is taken on trust. Every value from outside (arguments, globals, captured variables, attributes) is read through a path that later calls
check again (`guards`); what the evaluator does not know, or may not do twice (writes to what others see, random numbers), ends the capture.

    sources      the tree of a running function, from its file
    guards       paths and checks as one generated function
    values       what the evaluator computes with
    watch        what operators write, and whether they are random
    recorder     tensors and sizes as nodes of a graph
    attributes, expressions, calls, statements: the evaluator, in parts
    capture      a call as a graph, its guards and its result's form
    backends     what becomes of a graph
    weights      parameters as constants, while they are what they were
"""
