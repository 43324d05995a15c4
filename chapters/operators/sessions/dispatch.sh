python -m torch_openreg.dispatch add.Tensor linear nonzero
python -m torch_openreg.dispatch ad.Tensr 2>&1 || true
