// The progress of long work: a bar with rate and remaining time on a terminal, a line every 10 s elsewhere.
// Invariant: prints nothing in the first 2 s, so short work stays quiet; writes to stderr only.
// Used by the verbs of `lockstep shard` and `lockstep ckpt bench`.
#pragma once

#include <cstdint>
#include <string>

#include "core/clock.hpp"

namespace lockstep::training {

enum class ProgressUnit { samples, bytes, stages };

/// "packing  42 %  12.3 k samples/s  2.1 s left"; `bar_width` 0: without the bar.
[[nodiscard]] std::string progress_line(const std::string& what, ProgressUnit unit, std::uint64_t n_done,
                                        std::uint64_t n_all, core::Seconds elapsed, std::size_t bar_width);

class Progress {
 public:
  /// `is_shown`: on one rank only. `clock` must outlive it.
  Progress(std::string what, ProgressUnit unit, bool is_shown, const core::Clock& clock = core::real_clock());
  /// Clears the terminal's line for other output.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Returns false if a signal asks for an end.
  [[nodiscard]] bool update(std::uint64_t n_done, std::uint64_t n_all);

 private:
  std::string what_;
  ProgressUnit unit_;
  bool is_shown_;
  bool is_terminal_;
  bool has_shown_ = false;
  core::Timer watch_;
  double next_s_ = is_terminal_ ? 2 : 10;
};

}  // namespace lockstep::training
