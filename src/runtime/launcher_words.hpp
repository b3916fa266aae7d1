// Messages of launchers about a job that failed or was interrupted, besides the message of the program itself.
// Invariant: only lines that are known word for word are left out; unknown lines stay as they are.
// Used by supervise.cpp.
#pragma once

#include <string>
#include <string_view>

namespace lockstep::runtime {

class LauncherWords {
 public:
  /// Takes new output; returns the part of it, and of earlier output, that is to be shown now.
  [[nodiscard]] std::string pass(std::string_view text);
  /// Output that is held back because it may begin a known line or belong to a frame around known lines; to be shown
  /// once no more comes.
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
