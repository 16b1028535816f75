// exp, log, pow, sin and cos in double precision from + - * / and bit operations only, for tables that are
// made at load (RoPE angles, windows, schedules): the same bits on every machine, whatever its libm. Scalar,
// not for hot loops.
#pragma once

namespace tessera {

/// e^x; relative error below 5e-16 (denormal results: half a unit more). inf above 709.8, 0 below -745.2.
double exact_exp(double x);
/// Natural logarithm; relative error below 5e-16. -inf at 0, NaN below.
double exact_log(double x);
/// base^exponent = exp(exponent log(base)) for base >= 0; relative error below 5e-16 (1 + |exponent
/// log(base)|). A negative base gives NaN.
double exact_pow(double base, double exponent);
/// Sine and cosine of x radians; absolute error below 5e-16. Throw UsageError for finite |x| above 8e8; NaN
/// for infinities.
double exact_sin(double x);
double exact_cos(double x);

}  // namespace tessera
