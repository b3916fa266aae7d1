// refused: Seconds.* to .*Bytes
#include "core/units.hpp"

using namespace lockstep::core;

#ifdef MISTAKE
double rate(Bytes bytes, Seconds time) { return gigabytes_per_second(time, bytes); }
#else
double rate(Bytes bytes, Seconds time) { return gigabytes_per_second(bytes, time); }
#endif
