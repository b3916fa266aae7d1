// What launchers say about a job that failed or was interrupted, beside the message that the program itself gave.
// Invariant: only lines that are known word by word are left out; what is unknown stays as it is.
// Used by supervise.cpp.
#pragma once

#include <string>
#include <string_view>

namespace lockstep::runtime {

class LauncherWords {
 public:
  /// Takes what has come; returns what of it, and of what came before, is to be shown now.
  [[nodiscard]] std::string pass(std::string_view text);
  /// What is held back as it may be the begin of a known line, or in a frame around known lines; to be shown once
  /// nothing more comes.
  [[nodiscard]] std::string release();

 private:
  [[nodiscard]] std::string take(const std::string& line);
  [[nodiscard]] std::string end_frame();

  std::string line_{};   ///< not complete yet
  std::string frame_{};  ///< from a rule of dashes on; empty: none was seen
  std::string rest_{};   ///< of the frame: lines that are not known
  bool has_known_ = false;
};

}  // namespace lockstep::runtime
