// How one rank tells the others, in the middle of independent work, to stop.
// Invariant: no communication and no waiting: the flag is a file in the folder that all ranks write to, and ranks look
// for it now and then.
// Used by data/write/pack.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

#include "core/clock.hpp"

namespace lockstep::data {

class StopFlag {
 public:
  /// `clock` must outlive it.
  explicit StopFlag(const std::string& folder, const core::Clock& clock = core::real_clock())
      : path_{folder + "/.stop"}, clock_{clock} {}

  /// Where even an empty file cannot be made, others notice the same trouble themselves.
  void raise() {
    is_raised_ = true;
    const std::ofstream file{path_};
  }

  [[nodiscard]] bool is_raised() {
    const double now = clock_.now().value;
    if (is_raised_ || now < next_look_) return is_raised_;
    next_look_ = now + interval_s;
    std::error_code error;
    is_raised_ = std::filesystem::exists(path_, error);
    return is_raised_;
  }

 private:
  static constexpr double interval_s = 0.2;

  std::string path_;
  const core::Clock& clock_;
  bool is_raised_ = false;
  double next_look_ = 0;
};

}  // namespace lockstep::data
