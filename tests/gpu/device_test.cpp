// Buffers, streams and events of a GPU.
#include "runtime/device.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/error.hpp"
#include "optim/cuda/arena.hpp"
#include "runtime/accelerator.hpp"

namespace lockstep::runtime {
namespace {

constexpr std::size_t n_numbers = std::size_t{1} << 24;

Buffer numbers_in(Memory memory) { return Buffer{core::Bytes{n_numbers * sizeof(float)}, memory}; }

TEST(GpuDevice, IsNotTheHost) {
  EXPECT_FALSE(is_host_the_device());
  EXPECT_ANY_THROW(static_cast<void>(on_host(numbers_in(Memory::device).on_device<float>())));
}

TEST(GpuDevice, GivesZeros) {
  Stream stream;
  for (const Memory memory : {Memory::device, Memory::pinned}) {
    const Buffer buffer = numbers_in(memory), host = numbers_in(Memory::pinned);
    std::ranges::fill(host.bytes(), std::byte{1});
    stream.copy(host.bytes(), buffer.on_device<std::byte>());
    stream.wait();
    EXPECT_TRUE(std::ranges::all_of(host.bytes(), [](std::byte b) { return b == std::byte{0}; }));
    stream.fill(buffer.on_device<std::byte>(), std::byte{7});  // the next buffer may get this memory
    stream.wait();
  }
}

TEST(GpuDevice, CopiesThereAndBack) {
  Stream stream;
  const Buffer from = numbers_in(Memory::pinned), to = numbers_in(Memory::pinned);
  const Buffer first = numbers_in(Memory::device), second = numbers_in(Memory::device);
  for (std::size_t i = 0; i < n_numbers; ++i) from.as<float>()[i] = static_cast<float>(i);
  stream.copy(first.on_device<std::byte>(), from.bytes());
  stream.copy(second.on_device<std::byte>(), DeviceSpan<const std::byte>{first.on_device<std::byte>()});
  stream.copy(to.bytes(), DeviceSpan<const std::byte>{second.on_device<std::byte>()});
  stream.wait();
  EXPECT_EQ(std::memcmp(from.bytes().data(), to.bytes().data(), from.bytes().size()), 0);
}

// A long series of copies in one stream; only the event orders the other stream's read after it.
TEST(GpuDevice, WaitsForEventsOfOtherStreams) {
  Stream writer, reader;
  const Buffer from = numbers_in(Memory::device), to = numbers_in(Memory::device), host = numbers_in(Memory::pinned);
  for (int round = 1; round <= 5; ++round) {
    for (int i = 0; i < 50; ++i) {
      writer.fill(from.on_device<std::byte>(), static_cast<std::byte>(i == 49 ? round : 99));
      writer.copy(to.on_device<std::byte>(), DeviceSpan<const std::byte>{from.on_device<std::byte>()});
    }
    reader.wait_for(writer.mark());
    reader.copy(host.bytes(), DeviceSpan<const std::byte>{to.on_device<std::byte>()});
    reader.wait();
    EXPECT_TRUE(std::ranges::all_of(host.bytes(), [&](std::byte b) { return b == static_cast<std::byte>(round); }));
    writer.wait_for(reader.mark());  // not written again before it was read
  }
}

TEST(GpuDevice, HasKernelsInTheOrderOfTheirStream) {
  Stream stream;
  const Buffer host = numbers_in(Memory::pinned), numbers = numbers_in(Memory::device);
  const Buffer halves{core::Bytes{n_numbers * 2}, Memory::device};
  for (std::size_t i = 0; i < n_numbers; ++i) host.as<float>()[i] = static_cast<float>(i % 256);
  stream.copy(numbers.on_device<std::byte>(), host.bytes());
  const Buffer later = numbers_in(Memory::device);
  optim::cuda::cast(stream, numbers.on_device<float>(), halves.on_device<core::bfloat16>());
  stream.fill(numbers.on_device<std::byte>(), std::byte{0});
  optim::cuda::cast(stream, numbers.on_device<float>(), later.on_device<core::bfloat16>().subspan(0, n_numbers));
  const Buffer first{core::Bytes{n_numbers * 2}, Memory::pinned}, second{core::Bytes{n_numbers * 2}, Memory::pinned};
  stream.copy(first.bytes(), DeviceSpan<const std::byte>{halves.on_device<std::byte>()});
  stream.copy(second.bytes(), DeviceSpan<const std::byte>{later.on_device<std::byte>()}.subspan(0, n_numbers * 2));
  stream.wait();
  for (std::size_t i = 0; i < n_numbers; ++i) {
    ASSERT_EQ(static_cast<float>(first.as<core::bfloat16>()[i]), host.as<float>()[i]);
    ASSERT_EQ(second.as<core::bfloat16>()[i].bits, 0);
  }
}

TEST(GpuDevice, ReplaysWhatWasRecorded) {
  Stream stream, beside;
  const Buffer host = numbers_in(Memory::pinned), back = numbers_in(Memory::pinned);
  const Buffer first = numbers_in(Memory::device), second = numbers_in(Memory::device);
  stream.begin_recording();
  stream.copy(first.on_device<std::byte>(), host.bytes());
  beside.wait_for(stream.mark());
  beside.copy(second.on_device<std::byte>(), DeviceSpan<const std::byte>{first.on_device<std::byte>()});
  stream.wait_for(beside.mark());
  stream.copy(back.bytes(), DeviceSpan<const std::byte>{second.on_device<std::byte>()});
  const Recording recording = stream.end_recording();
  stream.wait();
  EXPECT_TRUE(std::ranges::all_of(back.bytes(), [](std::byte b) { return b == std::byte{0}; })) << "it is not done";
  for (const int round : {1, 2}) {
    std::ranges::fill(host.bytes(), static_cast<std::byte>(round));
    stream.replay(recording);
    const Event end = stream.mark();
    end.wait();
    EXPECT_TRUE(end.is_done());
    EXPECT_EQ(std::memcmp(host.bytes().data(), back.bytes().data(), host.bytes().size()), 0) << round;
  }
}

TEST(GpuDevice, SaysHowMuchItCouldNotGive) {
  for (const Memory memory : {Memory::device, Memory::pinned}) {
    try {
      const Buffer buffer{core::Bytes{std::uint64_t{1} << 60}, memory};
      FAIL() << "no machine has that much memory";
    } catch (const core::Error& error) {
      EXPECT_EQ(error.code(), core::ExitCode::system);
    }
  }
  Stream stream;  // and continues
  const Buffer buffer = numbers_in(Memory::device);
  stream.fill(buffer.on_device<std::byte>(), std::byte{1});
  stream.wait();
}

}  // namespace
}  // namespace lockstep::runtime
