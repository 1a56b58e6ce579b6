"""Programs as text, as PyTorch prints them."""

__all__ = ["program_text"]


def program_text(program):
    """The graph with the places in the code, the signature and the ranges of sizes."""
    graph = program.graph_module.print_readable(print_output=False).replace("\n", "\n    ")
    signature = str(program.graph_signature).replace("\n", "\n    ")
    return f"ExportedProgram:\n    {graph}\nGraph signature: {signature}\nRange constraints: {program.range_constraints}\n"
