#include "codec/media/source.h"
#include "core/tensor.h"
#include "train/loss.h"
