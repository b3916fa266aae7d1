#include "core/error.hpp"
#include "runtime/kernel/launch.hpp"
#include "runtime/kernel/numbers.hpp"

namespace lockstep::runtime::kernel {
namespace {

struct Put {
  core::StepNumbers* to;
  core::StepNumbers numbers;

  LOCKSTEP_HOST_DEVICE void operator()(std::size_t) const { *to = numbers; }
};

struct KeepUnless {
  const std::uint32_t* skips;
  float* values;
  float* kept;

  LOCKSTEP_HOST_DEVICE void operator()(std::size_t i) const {
    if (*skips == 0)
      kept[i] = values[i];
    else
      values[i] = kept[i];
  }
};

}  // namespace

void put(Stream& stream, DeviceSpan<core::StepNumbers> to, const core::StepNumbers& numbers) {
  for_each(stream, "put", 1, {}, {region(to.data(), to.size())}, Put{to.data(), numbers});
}

void keep_unless(Stream& stream, DeviceSpan<const std::uint32_t> skips, DeviceSpan<float> values,
                 DeviceSpan<float> kept) {
  core::require(values.size() == kept.size(), "values and their copy have the same size");
  if (values.size() == 0) return;
  const Region of_values = region(values.data(), values.size()), of_kept = region(kept.data(), kept.size());
  for_each(stream, "keep_unless", values.size(), {region(skips.data(), skips.size()), of_values, of_kept},
           {of_values, of_kept}, KeepUnless{skips.data(), values.data(), kept.data()});
}

}  // namespace lockstep::runtime::kernel
