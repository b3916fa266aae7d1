// refused: DeviceSpan
#include "runtime/device.hpp"

using lockstep::runtime::DeviceSpan;

void add_up(DeviceSpan<double> values);

#ifdef MISTAKE
void sum(std::span<double> values) { add_up(values); }
#else
void sum(DeviceSpan<double> values) { add_up(values); }
#endif
