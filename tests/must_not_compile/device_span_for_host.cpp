// refused: DeviceSpan
#include "runtime/device.hpp"

using lockstep::runtime::DeviceSpan;

double first_of(std::span<const double> values) { return values.front(); }

#ifdef MISTAKE
double first(DeviceSpan<const double> values) { return first_of(values); }
#else
double first(DeviceSpan<const double> values) { return first_of(lockstep::runtime::on_host(values)); }
#endif
