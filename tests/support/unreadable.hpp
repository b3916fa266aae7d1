// A file or folder that this user may not read, for a while.
// Invariant: afterwards its owner may do everything with it.
// Used by tests of code that meets what it may not read.
#pragma once

#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>

namespace lockstep::support {

/// Takes from this thread, and those it starts, or gives back, the power of root over files of any mode.
inline void rule_over_files(bool does) {
  constexpr std::uint32_t powers = 1U << CAP_DAC_OVERRIDE | 1U << CAP_DAC_READ_SEARCH;
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  std::array<__user_cap_data_struct, 2> data{};
  ASSERT_EQ(syscall(SYS_capget, &header, data.data()), 0);
  data[0].effective = does ? data[0].effective | (powers & data[0].permitted) : data[0].effective & ~powers;
  ASSERT_EQ(syscall(SYS_capset, &header, data.data()), 0);
}

/// While it lives, `path` cannot be read, not even by root.
class Unreadable {
 public:
  explicit Unreadable(std::string path) : path_{std::move(path)} {
    std::filesystem::permissions(path_, std::filesystem::perms::none);
    rule_over_files(false);
  }
  ~Unreadable() {
    rule_over_files(true);
    std::filesystem::permissions(path_, std::filesystem::perms::owner_all);
  }
  Unreadable(const Unreadable&) = delete;
  Unreadable& operator=(const Unreadable&) = delete;

 private:
  std::string path_;
};

}  // namespace lockstep::support
