// The transport that tests rely on must detect errors.
#include "comm/transport_threads.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "comm/registry.hpp"
#include "core/error.hpp"

namespace lockstep::comm {
namespace {

using Bytes8 = std::array<std::byte, 8>;

std::string failure_of(const std::vector<int>& nodes, const std::function<void(Transport&)>& body) {
  try {
    run_as_threads(nodes, body, {5});
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

TEST(ThreadTransport, CountsMessagesBytesAndTheLongestChain) {
  const Traffic traffic = run_as_threads({0, 0, 0}, [](Transport& transport) {
    const auto channel = transport.open_channel(1);
    Bytes8 data{};
    if (transport.rank() > 0) {
      channel->recv(0, transport.rank() - 1, data);
      channel->wait(0);
    }
    if (transport.rank() < 2) channel->send(0, transport.rank() + 1, data);
  });
  EXPECT_EQ(traffic.messages, 2U);
  EXPECT_EQ(traffic.bytes, 16U);
  EXPECT_EQ(traffic.steps, 2U);
}

/// Sums a vector, blocking or not.
void sum_once(Transport& transport, bool blocks) {
  std::vector<float> values(100);
  const auto plan = make_plan(transport, {.n_elements = values.size()});
  plan->bind(std::as_bytes(std::span{values}), std::as_writable_bytes(std::span{values}));
  if (blocks) return plan->run();
  plan->start({});
  plan->wait();
}

TEST(Transport, CountsWhatItsPlansAndThoseOfItsPartsSend) {
  std::atomic<std::uint64_t> messages = 0, bytes = 0;
  const Traffic traffic = run_as_threads({0, 1, 2}, [&](Transport& world) {
    const auto part = world.split(0, world.rank()), of_part = part->split(0, part->rank());
    sum_once(world, true);
    const Sent before = world.sent();
    EXPECT_GT(before.messages, 0U);
    EXPECT_EQ(part->sent(), Sent{});
    sum_once(*part, false);
    EXPECT_EQ(part->sent(), before);
    sum_once(*of_part, true);
    EXPECT_EQ(of_part->sent(), before);
    EXPECT_EQ(part->sent() - of_part->sent(), before);
    EXPECT_EQ(world.sent() - part->sent(), before);
    messages += world.sent().messages;
    bytes += world.sent().bytes;
  });
  EXPECT_EQ(messages, traffic.messages);
  EXPECT_EQ(bytes, traffic.bytes);
}

TEST(ThreadTransport, NoticesADeadlock) {
  const std::string failure = failure_of({0, 0}, [](Transport& transport) {
    const auto channel = transport.open_channel(1);
    Bytes8 data{};
    channel->recv(0, 1 - transport.rank(), data);
    channel->wait(0);
  });
  EXPECT_NE(failure.find("deadlock"), std::string::npos) << failure;
}

TEST(ThreadTransport, NoticesAMessageNobodyReceives) {
  const std::string failure = failure_of({0, 0}, [](Transport& transport) {
    const auto channel = transport.open_channel(1);
    const Bytes8 data{};
    if (transport.rank() == 0) channel->send(0, 1, data);
  });
  EXPECT_NE(failure.find("never received"), std::string::npos) << failure;
}

TEST(ThreadTransport, NoticesAMessageOfTheWrongSize) {
  const std::string failure = failure_of({0, 0}, [](Transport& transport) {
    const auto channel = transport.open_channel(1);
    Bytes8 data{};
    if (transport.rank() == 0) channel->send(0, 1, std::span{data}.first(4));
    if (transport.rank() == 1) {
      channel->recv(0, 0, data);
      channel->wait(0);
    }
  });
  EXPECT_NE(failure.find("expects 8 bytes"), std::string::npos) << failure;
}

TEST(ThreadTransport, AFailingRankEndsTheOthers) {
  const std::string failure = failure_of({0, 0, 0}, [](Transport& transport) {
    if (transport.rank() == 1) throw std::runtime_error("rank 1 gives up");
    const auto channel = transport.open_channel(1);
    Bytes8 data{};
    channel->recv(0, 1, data);
    channel->wait(0);
  });
  EXPECT_EQ(failure, "rank 1 gives up");
}

TEST(ThreadTransport, SplitsByColorAndOrdersByKey) {
  run_as_threads({0, 0, 1, 1, 1}, [](Transport& transport) {
    const auto group = transport.split(transport.rank() % 2, -transport.rank());
    core::require(group->n_ranks() == (transport.rank() % 2 == 0 ? 3 : 2), "even and odd ranks are apart");
    core::require(group->rank() == (group->n_ranks() - 1) - transport.rank() / 2, "highest rank first");
    core::require(group->nodes().front() == 0, "nodes are counted from 0");
  });
}

TEST(ThreadTransport, SharesMemoryOnANodeOnly) {
  run_as_threads({0, 0}, [](Transport& transport) {
    const auto segment = transport.share(64);
    core::require(segment->part(1 - transport.rank()).size() == 64, "the part of the other rank is seen");
  });
  EXPECT_NE(failure_of({0, 1}, [](Transport& transport) { static_cast<void>(transport.share(64)); }), "");
}

}  // namespace
}  // namespace lockstep::comm
