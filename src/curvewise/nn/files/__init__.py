"""Model files: tensors, programs, ONNX, Hugging Face."""
