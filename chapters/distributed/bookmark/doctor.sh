python -m torch_openreg.doctor
