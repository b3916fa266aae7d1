// Passes that a device records once and replays in later steps.
// Invariant: passes with the same key enqueue the same operations on the same addresses.
// Used by the learner, on devices that run behind the host.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <tuple>

#include "nn/executor.hpp"
#include "runtime/device.hpp"

namespace lockstep::training {

class Recordings {
 public:
  /// Samples, pass, and whether it is the last of its step.
  using Key = std::tuple<std::uint64_t, nn::Pass, bool>;

  /// Calls `enqueue` the first time, because libraries allocate and choose then. Records it the second time, and
  /// replays the recording from then on.
  void run(const Key& key, runtime::Stream& stream, const std::function<void()>& enqueue);

 private:
  struct Recorded {
    int n_made = 0;
    runtime::Recording recording{};
  };

  std::map<Key, Recorded> recorded_{};
};

}  // namespace lockstep::training
