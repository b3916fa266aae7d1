#include "runtime/device.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>

#include "core/error.hpp"

namespace lockstep::runtime {
namespace {

TEST(Buffer, IsPageAlignedAndZeroed) {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  for (const std::uint64_t size : {1, 4096, 100'001}) {
    const Buffer buffer{core::Bytes{size}};
    EXPECT_EQ(buffer.bytes().size(), size);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.bytes().data()) % page, 0);
    EXPECT_TRUE(
        std::all_of(buffer.bytes().begin(), buffer.bytes().end(), [](std::byte b) { return b == std::byte{0}; }));
    std::fill(buffer.bytes().begin(), buffer.bytes().end(), std::byte{0xff});  // the next buffer may get this memory
  }
}

TEST(Buffer, IsSeenAsElements) {
  const Buffer buffer{core::Bytes{24}};
  buffer.as<double>()[2] = 1.5;
  EXPECT_EQ(buffer.as<double>().size(), 3);
  EXPECT_EQ(buffer.as<double>()[2], 1.5);
  EXPECT_EQ(static_cast<void*>(buffer.as<double>().data()), buffer.bytes().data());
}

TEST(Buffer, MayBeEmpty) {
  EXPECT_TRUE(Buffer{}.bytes().empty());
  EXPECT_TRUE(Buffer{core::Bytes{0}}.as<int>().empty());
}

TEST(Buffer, SaysHowMuchItCouldNotGet) {
  for (const std::uint64_t size : {std::uint64_t{1} << 60, std::numeric_limits<std::uint64_t>::max()}) {
    try {
      const Buffer buffer{core::Bytes{size}};
      FAIL() << "no machine has that much memory";
    } catch (const core::Error& error) {
      EXPECT_EQ(error.code(), core::ExitCode::system);
      EXPECT_NE(std::string{error.what()}.find(core::format_bytes({size})), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace lockstep::runtime
