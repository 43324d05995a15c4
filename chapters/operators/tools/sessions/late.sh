python late.py 2>&1 | grep -E "late.py|^torch"
OPENREG_SCHEDULE=blocking python late.py 2>&1 | grep -E "late.py|^torch"
