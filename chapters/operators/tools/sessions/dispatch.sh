python -m torch_openreg.dispatch add.Tensor linear fake_quantize_per_tensor_affine_cachemask
python -m torch_openreg.dispatch ad.Tensr 2>&1 || true
