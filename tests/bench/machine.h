// What one core of this machine can do at best, measured: benchmarks report their rates as shares of it.
#pragma once

namespace tessera {

struct MachinePeak {
  double flops = 0;  ///< f32 operations per second, two per fused multiply-add, on the CPU target in use
  double bytes_per_second = 0;  ///< read by one core from memory, far beyond its caches
};

/// Measures on the first call (a second or so) and remembers. Uses the CPU target in use at that time.
const MachinePeak& machine_peak();

/// The main() of a benchmark program: sets the CPU target from TESSERA_CPU, says what this core can do, lets
/// `register_all` add its benchmarks, and runs those that the command line asks for. Returns the exit status.
int run_benchmarks(int argc, char** argv, void (*register_all)());

}  // namespace tessera
