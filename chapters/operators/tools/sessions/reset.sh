OPENREG_INJECT=launch:2 python reset.py
