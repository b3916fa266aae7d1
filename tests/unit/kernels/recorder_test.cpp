// The recorder detects what would go wrong on a GPU, and makes it go wrong.
#include "support/recorder.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace lockstep::test {
namespace {

using runtime::Buffer;
using runtime::Memory;
using runtime::Stream;
using runtime::kernel::for_each;
using runtime::kernel::region;

struct AddTo {
  const float* from;
  float* to;
  LOCKSTEP_HOST_DEVICE void operator()(std::size_t i) const { to[i] += from[i]; }
};

constexpr std::size_t n = 1000;
constexpr core::Bytes size{n * sizeof(float)};

class RecorderTest : public ::testing::Test {
 protected:
  // to += from
  static void add(Stream& stream, const Buffer& from, const Buffer& to) {
    const float* const source = from.on_device<float>().data();
    float* const sum = to.on_device<float>().data();
    for_each(stream, "add", n, {region(source, n), region(sum, n)}, {region(sum, n)}, AddTo{source, sum});
  }
  static void send(Stream& stream, const Buffer& from, const Buffer& to) {
    stream.copy(to.on_device<std::byte>(), from.bytes());
  }
  static float first_of(Stream& stream, const Buffer& device) {
    const Buffer host{size, Memory::pinned};
    stream.copy(host.bytes(), device.on_device<std::byte>());
    stream.wait();
    return host.as<float>()[0];
  }

  [[nodiscard]] std::string complaints() const {
    std::string all;
    for (const std::string& complaint : recorder_.complaints()) all += complaint + "\n";
    return all;
  }
  void expect_one_complaint(const std::string& part) const {
    EXPECT_EQ(recorder_.complaints().size(), 1U);
    EXPECT_NE(complaints().find(part), std::string::npos) << complaints();
  }

  Recorder recorder_{};
  UseRecorder use_{recorder_};
  Buffer input_{size, Memory::pinned};
  Buffer a_{size, Memory::device};
  Buffer b_{size, Memory::device};
};

TEST_F(RecorderTest, AStreamIsDoneWhenWhatItWaitsForIs) {
  const Buffer from{size, Memory::pinned};
  const Buffer to{size, Memory::pinned};
  const Buffer device{size, Memory::device};
  from.as<float>()[0] = 3;
  Stream work;
  Stream waiting;
  send(work, from, device);
  work.copy(to.bytes(), device.on_device<std::byte>());
  waiting.wait_for(work.mark());
  waiting.wait();
  EXPECT_EQ(to.as<float>()[0], 3);
}

TEST_F(RecorderTest, TimesAreThoseAtWhichAStreamGetsThere) {
  Stream stream;
  const runtime::Event begin = stream.mark_time();
  const Buffer device{size, Memory::device};
  stream.fill(device.on_device<std::byte>(), std::byte{1});
  const runtime::Event end = stream.mark_time();
  end.wait();
  EXPECT_GT(end.since(begin).value, 0);
}

TEST_F(RecorderTest, RunsWhatIsEnqueuedWhenSomebodyWaits) {
  EXPECT_FALSE(runtime::is_host_the_device());
  Stream stream;
  input_.as<float>()[0] = 3;
  send(stream, input_, a_);
  add(stream, a_, b_);
  add(stream, a_, b_);
  EXPECT_EQ(first_of(stream, b_), 6);
  EXPECT_EQ(complaints(), "");
}

TEST_F(RecorderTest, LetsAnInputThatIsOverwrittenTooSoonBeWrong) {
  Stream stream;
  input_.as<float>()[0] = 3;
  send(stream, input_, a_);
  input_.as<float>()[0] = 4;  // the copy need not have begun
  EXPECT_EQ(first_of(stream, a_), 4);
}

TEST_F(RecorderTest, ComplainsOfStreamsThatDoNotWaitForOneAnother) {
  Stream copies;
  Stream computing;
  input_.as<float>()[0] = 3;
  send(copies, input_, a_);
  add(computing, a_, b_);
  EXPECT_EQ(first_of(computing, b_), 0) << "and the result shows it";
  expect_one_complaint("add in stream 1 reads");
  expect_one_complaint("copy in stream 0 may still be writing");
}

TEST_F(RecorderTest, IsContentWithEvents) {
  Stream copies;
  Stream computing;
  input_.as<float>()[0] = 3;
  send(copies, input_, a_);
  computing.wait_for(copies.mark());
  add(computing, a_, b_);
  copies.wait_for(computing.mark());
  send(copies, input_, a_);
  EXPECT_EQ(first_of(computing, b_), 3);
  EXPECT_EQ(complaints(), "");
}

TEST_F(RecorderTest, KnowsThatOrderGoesOnFromStreamToStream) {
  Stream first;
  Stream second;
  Stream third;
  input_.as<float>()[0] = 3;
  send(first, input_, a_);
  second.wait_for(first.mark());
  third.wait_for(second.mark());
  add(third, a_, b_);
  EXPECT_EQ(first_of(third, b_), 3);
  EXPECT_EQ(complaints(), "");
}

TEST_F(RecorderTest, ComplainsOfAMarkThatWasSetTooSoon) {
  Stream copies;
  Stream computing;
  const runtime::Event too_soon = copies.mark();
  send(copies, input_, a_);
  computing.wait_for(too_soon);
  add(computing, a_, b_);
  EXPECT_EQ(recorder_.complaints().size(), 1U);
}

TEST_F(RecorderTest, ComplainsOfWritingWhatAnotherStreamReads) {
  Stream computing;
  Stream copies;
  add(computing, a_, b_);
  send(copies, input_, a_);
  expect_one_complaint("add in stream 0 may still be reading");
}

TEST_F(RecorderTest, LetsTheHostsWaitingOrderStreams) {
  Stream copies;
  Stream computing;
  send(copies, input_, a_);
  copies.wait();
  add(computing, a_, b_);
  EXPECT_EQ(complaints(), "");
  EXPECT_EQ(recorder_.n_host_waits(), 1);
}

TEST_F(RecorderTest, LetsTheHostWaitForAMomentAlone) {
  const Buffer before{size, Memory::pinned};
  const Buffer after{size, Memory::pinned};
  input_.as<float>()[0] = 3;
  Stream stream;
  stream.copy(before.bytes(), input_.on_device<std::byte>());
  const runtime::Event moment = stream.mark();
  stream.copy(after.bytes(), input_.on_device<std::byte>());
  moment.wait();
  EXPECT_EQ(before.as<float>()[0], 3);
  EXPECT_EQ(after.as<float>()[0], 0);
  moment.wait();
  EXPECT_EQ(recorder_.n_host_waits(), 1) << "nobody stands still for what is known to be over";
  EXPECT_TRUE(stream.mark().is_done());
  EXPECT_EQ(after.as<float>()[0], 3);
}

TEST_F(RecorderTest, ReplaysWhatTwoStreamsWereGiven) {
  Stream stream;
  Stream beside;
  send(stream, input_, a_);
  stream.begin_recording();
  add(stream, input_, a_);
  beside.wait_for(stream.mark());
  add(beside, a_, b_);
  stream.wait_for(beside.mark());
  add(stream, b_, a_);
  const runtime::Recording recording = stream.end_recording();
  input_.as<float>()[0] = 1;
  EXPECT_EQ(first_of(stream, a_), 1) << "what is recorded is not done";
  stream.replay(recording);
  EXPECT_EQ(first_of(stream, a_), 4);
  stream.replay(recording);
  EXPECT_EQ(first_of(stream, a_), 12) << "4 + 1, and 2 + 5";
  EXPECT_EQ(complaints(), "");
}

TEST_F(RecorderTest, ComplainsOfWhatCannotBeRecorded) {
  Stream stream;
  Stream beside;
  send(beside, input_, a_);
  const runtime::Event before = beside.mark();
  const auto expect = [this](const std::string& part) {
    EXPECT_NE(complaints().find(part), std::string::npos) << part << " is not in " << complaints();
  };
  stream.begin_recording();
  stream.wait_for(before);
  expect("stream 0 waits for what is not recorded with it");
  before.wait();
  expect("the host waits while stream 0 is recorded");
  const Buffer late{size, Memory::device};
  expect("the host allocates while stream 0 is recorded");
  beside.wait_for(stream.mark());
  add(beside, a_, b_);
  static_cast<void>(stream.end_recording());
  expect("stream 1 is recorded, but not waited for in the end");
}

TEST_F(RecorderTest, TellsPartsOfOneBufferApart) {
  Stream one;
  Stream other;
  const auto half = size.value / 2;
  const auto bytes = a_.on_device<std::byte>();
  one.fill(runtime::DeviceSpan<std::byte>::at(bytes.data(), half), std::byte{1});
  other.fill(runtime::DeviceSpan<std::byte>::at(bytes.data() + half, half), std::byte{2});
  EXPECT_EQ(complaints(), "");
  other.fill(runtime::DeviceSpan<std::byte>::at(bytes.data() + half - 1, half), std::byte{2});
  EXPECT_EQ(recorder_.complaints().size(), 1U);
}

TEST_F(RecorderTest, ComplainsOfMemoryThatIsNotAllocated) {
  Stream stream;
  const auto bytes = a_.on_device<std::byte>();
  std::vector<std::byte> own(8);
  stream.copy(runtime::DeviceSpan<std::byte>::at(bytes.data(), 8), std::span<const std::byte>{own});
  expect_one_complaint("copy reads 8 bytes that are not allocated");
}

TEST_F(RecorderTest, CountsMemory) {
  const std::size_t before = recorder_.n_bytes();
  const int n_allocations = recorder_.n_allocations();
  { const Buffer more{core::Bytes{100}, Memory::device}; }
  EXPECT_EQ(recorder_.n_bytes(), before);
  EXPECT_EQ(recorder_.peak_bytes(), before + 100);
  EXPECT_EQ(recorder_.n_allocations(), n_allocations + 2);
}

TEST_F(RecorderTest, GivesTheSameLinesForTheSameStep) {
  Stream stream;
  send(stream, input_, a_);
  add(stream, a_, b_);
  const std::vector<std::string> first = recorder_.take_lines();
  send(stream, input_, a_);
  add(stream, a_, b_);
  EXPECT_EQ(recorder_.take_lines(), first);
  send(stream, input_, a_);
  add(stream, b_, a_);
  EXPECT_NE(recorder_.take_lines(), first);
}

#if __has_builtin(__builtin_clear_padding)
// Padding between the members of a body does not count.
TEST_F(RecorderTest, GivesTheSameLinesWhateverLiesInThePadding) {
  struct Padded {
    std::size_t n;
    bool is_set;
    LOCKSTEP_HOST_DEVICE void operator()(std::size_t) const {}
  };
  Stream stream;
  const auto lines_with = [&](int padding, bool is_set) {
    Padded body;
    std::memset(static_cast<void*>(&body), padding, sizeof body);
    body.n = 1;
    body.is_set = is_set;
    for_each(stream, "padded", 1, {}, {}, body);
    return recorder_.take_lines();
  };
  EXPECT_EQ(lines_with(0, true), lines_with(0xff, true));
  EXPECT_NE(lines_with(0, true), lines_with(0, false));
}
#endif

}  // namespace
}  // namespace lockstep::test
