python late.py 2>&1 | grep -E "late.py|^RuntimeError"
OPENREG_SCHEDULE=blocking python late.py 2>&1 | grep -E "late.py|^RuntimeError"
