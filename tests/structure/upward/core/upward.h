#pragma once
#include "codec/codec.h"
#include "core/tensor.h"
