#include "optim/cuda/casts.hpp"
#include "optim/cuda/units.hpp"

namespace lockstep::optim::cuda {
namespace {

template <class From, class To>
struct Cast {
  const From* from;
  To* to;

  LOCKSTEP_HOST_DEVICE void operator()(std::size_t i) const {
    const auto values = kernel::load_once<From, unit>(from, i);
    kernel::Pack<To, unit> rounded;
    for (int j = 0; j < unit; ++j) rounded[j] = kernel::round_to<To>(kernel::to_float(values[j]));
    kernel::store(to, i, rounded);
  }
};

template <class From, class To>
void enqueue_cast(Stream& stream, DeviceSpan<const From> from, DeviceSpan<To> to) {
  core::require(from.size() == to.size() && from.size() % range_multiple == 0,
                "both arenas of a cast have the same size, a multiple of 16 elements");
  kernel::for_each(stream, "cast", from.size() / unit, {region_of(from)}, {region_of(to)},
                   Cast<From, To>{from.data(), to.data()});
}

}  // namespace

void cast(Stream& stream, DeviceSpan<const float> from, DeviceSpan<core::bfloat16> to) {
  enqueue_cast(stream, from, to);
}
void cast(Stream& stream, DeviceSpan<const float> from, DeviceSpan<core::float16> to) {
  enqueue_cast(stream, from, to);
}
void cast(Stream& stream, DeviceSpan<const core::bfloat16> from, DeviceSpan<float> to) {
  enqueue_cast(stream, from, to);
}
void cast(Stream& stream, DeviceSpan<const core::float16> from, DeviceSpan<float> to) {
  enqueue_cast(stream, from, to);
}

}  // namespace lockstep::optim::cuda
