// Every row for devices over real ranks, each on a made-up GPU, with a library of the host in NCCL's place.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "comm/device_plan.hpp"
#include "comm/transport.hpp"
#include "core/slice.hpp"
#include "runtime/staging.hpp"
#include "support/device_case.hpp"
#include "support/mpi_main.hpp"
#include "support/recorder.hpp"

namespace lockstep {
namespace {

using comm::Algorithm;
using comm::Call;
using comm::Collective;
using comm::Devices;
using comm::ReduceOp;
using core::DType;
using support::Input;

class OnDevices : public testing::Test {
 protected:
  void SetUp() override { setenv("LOCKSTEP_MADE_UP_MPI", "takes GPUs", 1); }
  void TearDown() override {
    for (const std::string& complaint : recorder_.complaints()) ADD_FAILURE() << complaint;
  }

  // Returns whether a row supports the call, and compares its result.
  bool compare(const Algorithm& row, comm::DeviceGroup& group, const Call& call, bool in_place) {
    if (comm::obstacle(row, call, *over_, Devices::switched)) return false;
    const auto host = comm::make_plan(*over_, call);
    support::check(*over_,
                   {.group = &group, .host = host.get(), .call = call, .in_place = in_place, .input = Input::exact});
    return true;
  }

  std::unique_ptr<comm::Transport> over_ = comm::make_transport(support::world(), {.oversubscribed = true});
  test::Recorder recorder_;
  test::UseRecorder use_{recorder_};
};

TEST_F(OnDevices, EveryRowGivesTheHostsBits) {
  for (const Algorithm& row : comm::algorithms()) {
    if (!row.is_for_devices()) continue;
    const auto group = row.group(row, *over_);
    EXPECT_EQ(group->name(), row.name);
    for (const Collective collective : comm::all_collectives)
      for (const std::size_t n : {0, 1, 12, 1000, 20'011})
        for (const bool is_order_fixed : {false, true})
          for (const bool in_place : {false, true})
            EXPECT_NO_THROW(compare(
                row, *group, {.collective = collective, .n_elements = n, .is_order_fixed = is_order_fixed}, in_place));
    for (const DType dtype : core::all_dtypes)
      for (const ReduceOp op : comm::all_reduce_ops)
        EXPECT_NO_THROW(compare(row, *group, {.dtype = dtype, .op = op, .n_elements = 517}, true));
  }
}

TEST_F(OnDevices, WhatARowCannotDoIsSaid) {
  const Call sixteen{.dtype = DType::int16, .n_elements = 10};
  const Call in_order{.collective = Collective::reduce_scatter, .n_elements = 10, .is_order_fixed = true};
  const Call average{.dtype = DType::int32, .op = ReduceOp::avg, .n_elements = 10};
  const Algorithm& library = comm::choose_for_devices({}, *over_, Devices::own);
  const Algorithm& through_host = comm::choose_for_devices({}, *over_, Devices::shared);
  EXPECT_NE(&library, &through_host);
  EXPECT_EQ(&comm::choose_for_devices(sixteen, *over_, Devices::own), &through_host);
  EXPECT_EQ(&comm::choose_for_devices(in_order, *over_, Devices::own), &through_host);
  EXPECT_NE(comm::obstacle(library, sixteen, *over_, Devices::own)->find("int16"), std::string::npos);
  EXPECT_NE(comm::obstacle(library, in_order, *over_, Devices::own)->find("fixed order"), std::string::npos);
  EXPECT_NE(comm::obstacle(library, average, *over_, Devices::own)->find("rounds more than once"), std::string::npos);
  EXPECT_NE(comm::obstacle(library, {}, *over_, Devices::shared)->find("share"), std::string::npos);
  EXPECT_NE(comm::obstacle(library, {}, *over_)->find("GPUs"), std::string::npos);
  EXPECT_FALSE(comm::obstacle(through_host, average, *over_, Devices::shared));
  EXPECT_THROW(static_cast<void>(library.group(library, *over_)->make_plan(sixteen)), core::Error);
  for (const Algorithm& row : comm::algorithms())
    EXPECT_TRUE(row.is_for_devices() || comm::obstacle(row, {}, *over_, Devices::own)) << row.name;
}

TEST_F(OnDevices, TheMpiLibraryHasToSayAndProveThatItTakesMemoryOfGpus) {
  const Algorithm& row = *comm::find_algorithm("mpi:device");
  EXPECT_FALSE(comm::obstacle(row, {}, *over_, Devices::own));
  EXPECT_NE(comm::obstacle(row, {.dtype = DType::bfloat16}, *over_, Devices::own)->find("bfloat16"), std::string::npos);
  EXPECT_TRUE(comm::obstacle(row, {.op = ReduceOp::avg}, *over_, Devices::own));
  EXPECT_TRUE(comm::obstacle(row, {.n_elements = (std::size_t{1} << 30) + 1}, *over_, Devices::own));
  for (const Collective collective : comm::all_collectives)
    EXPECT_FALSE(comm::obstacle(row, {.collective = collective}, *over_, Devices::own));
  EXPECT_FALSE(
      comm::obstacle(row, {.collective = Collective::all_gather, .dtype = DType::bfloat16}, *over_, Devices::own));
  unsetenv("LOCKSTEP_MADE_UP_MPI");
  EXPECT_NE(comm::obstacle(row, {}, *over_, Devices::own)->find("reports that it is not"), std::string::npos);
  EXPECT_THROW(static_cast<void>(row.group(row, *over_)->make_plan({})), core::Error);
  setenv("LOCKSTEP_MADE_UP_MPI", "takes GPUs", 1);
  test::Recorder without_results{runtime::kernel::ThreadOrder::ascending, test::Bodies::skip};
  const test::UseRecorder use{without_results};
  try {
    static_cast<void>(row.group(row, *over_)->make_plan({}));
    ADD_FAILURE() << "a wrong sum is no obstacle";
  } catch (const core::Error& error) {
    EXPECT_NE(std::string{error.what()}.find("its sum of one number per rank in GPU memory is wrong"),
              std::string::npos);
  }
}

TEST_F(OnDevices, WhatTheLibraryHasConnectedByIsKnown) {
  const Algorithm& library = comm::choose_for_devices({}, *over_, Devices::own);
  setenv("LOCKSTEP_HOST_NCCL_NETWORK", over_->rank() == 0 ? "IB" : "Socket", 1);
  const comm::Connection mine = library.group(library, *over_)->connection();
  unsetenv("LOCKSTEP_HOST_NCCL_NETWORK");
  EXPECT_EQ(mine.network, over_->rank() == 0 ? "IB" : "Socket");
  EXPECT_EQ(mine.n_channels, 24);
  EXPECT_EQ(std::getenv("NCCL_DEBUG"), nullptr);
  runtime::Topology topology = runtime::discover_topology(support::world());
  EXPECT_EQ(comm::gather_connections(support::world(), topology, mine).networks, "");
  topology.n_nodes = 2;
  const comm::AllConnections all = comm::gather_connections(support::world(), topology, mine);
  EXPECT_EQ(all.n_channels, 24);
  EXPECT_EQ(all.networks, over_->n_ranks() == 1 ? "IB" : "IB, Socket");
  const std::string ranks = "on " + std::to_string(over_->n_ranks() - 1) + " of " + std::to_string(over_->n_ranks());
  EXPECT_EQ(all.warning.find(ranks) != std::string::npos, over_->n_ranks() > 1) << all.warning;
}

TEST_F(OnDevices, AStepOfTheLibraryOnlyEnqueues) {
  const Algorithm& library = comm::choose_for_devices({}, *over_, Devices::own);
  const auto group = library.group(library, *over_);
  EXPECT_TRUE(group->only_enqueues());
  const Call call{.n_elements = 100};
  const auto plan = group->make_plan(call);
  const runtime::Buffer memory{call.bytes(), runtime::Memory::device};
  plan->bind(memory.on_device<std::byte>(), memory.on_device<std::byte>());
  runtime::Stream stream;
  const int n_allocations = recorder_.n_allocations();
  const int n_waits = recorder_.n_host_waits();
  plan->start(stream);
  plan->finish(stream);
  EXPECT_EQ(recorder_.n_allocations(), n_allocations);
  EXPECT_EQ(recorder_.n_host_waits(), n_waits);
  comm::wait(stream, *group);
}

// Between a call of all ranks and the end of it.
TEST_F(OnDevices, PartsOfAGroupSumByThemselves) {
  const int rank = over_->rank(), n_ranks = over_->n_ranks(), first = rank / 2 * 2;
  const auto part = over_->split(first, rank);
  for (const Algorithm& row : comm::algorithms()) {
    if (!row.is_for_devices() || comm::obstacle(row, {}, *over_, Devices::own)) continue;
    const auto all = row.group(row, *over_);
    const auto some = all->split(*part);
    EXPECT_EQ(some->name(), row.name);
    EXPECT_EQ(some->only_enqueues(), all->only_enqueues());
    const Call call{.dtype = DType::float64, .n_elements = 2};
    const runtime::Buffer memory{{2 * call.bytes().value}, runtime::Memory::device};
    const runtime::Buffer here{{2 * call.bytes().value}, runtime::Memory::pinned};
    const auto values = here.as<double>();
    values[0] = values[2] = rank + 1, values[1] = values[3] = -1;
    runtime::Stream stream;
    stream.copy(memory.on_device<std::byte>(), here.bytes());
    const auto plan_of = [&](comm::DeviceGroup& group, std::size_t place) {
      auto plan = group.make_plan(call);
      const auto bytes = memory.on_device<std::byte>().subspan(place * call.bytes().value, call.bytes().value);
      plan->bind(bytes, bytes);
      return plan;
    };
    const auto of_all = plan_of(*all, 0), of_some = plan_of(*some, 1);
    of_all->start(stream);
    of_some->start(stream);
    of_some->finish(stream);
    of_all->finish(stream);
    comm::wait(stream, *all);
    stream.copy(here.bytes(), memory.on_device<std::byte>());
    stream.wait();
    const int n_some = part->n_ranks();
    EXPECT_EQ(values[0], n_ranks * (n_ranks + 1) / 2) << row.name;
    EXPECT_EQ(values[1], -n_ranks) << row.name;
    EXPECT_EQ(values[2], n_some * first + n_some * (n_some + 1) / 2) << row.name;
    EXPECT_EQ(values[3], -n_some) << row.name;
  }
}

// The group fails, too, because its calls may wait for those of the part.
TEST_F(OnDevices, WhatBreaksInAPartIsNoticedByTheWhole) {
  const Algorithm& library = comm::choose_for_devices({}, *over_, Devices::own);
  const auto group = library.group(library, *over_);
  const auto part = group->split(*over_);
  EXPECT_NO_THROW(group->check());
  setenv("LOCKSTEP_HOST_NCCL_BREAKS", "parts", 1);
  EXPECT_THROW(group->check(), core::Error);
  setenv("LOCKSTEP_HOST_NCCL_BREAKS", "all", 1);
  EXPECT_NO_THROW(group->check()) << "there is none any more";
  unsetenv("LOCKSTEP_HOST_NCCL_BREAKS");
}

// Values depend on the sender and its part: the neighbour at distance d sends part d.
TEST_F(OnDevices, AnExchangeBringsWhatRanksOnTheLeftHaveSent) {
  const int n_ranks = over_->n_ranks();
  const auto value = [](int rank, std::size_t i) {
    return static_cast<std::byte>(rank * 50 + static_cast<int>(i % 47));
  };
  for (const Algorithm& row : comm::algorithms()) {
    if (!row.is_for_devices() || n_ranks == 1) continue;
    const auto group = row.group(row, *over_);
    for (int n_neighbours = 1; n_neighbours < n_ranks; ++n_neighbours) {
      constexpr std::size_t n = 10'007;  // no multiple of any number of neighbours
      const auto plan = group->make_exchange({n}, n_neighbours);
      EXPECT_EQ(plan != nullptr, row.needs == comm::Needs::own_devices || row.needs == comm::Needs::switches)
          << row.name;
      if (!plan) continue;
      const runtime::Buffer memory{{2 * n}, runtime::Memory::device}, here{{n}, runtime::Memory::pinned};
      const auto sent = memory.on_device<std::byte>().subspan(0, n);
      const auto received = memory.on_device<std::byte>().subspan(n, n);
      for (std::size_t i = 0; i < n; ++i) here.bytes()[i] = value(over_->rank(), i);
      runtime::Stream stream;
      stream.copy(sent, here.bytes());
      plan->bind(sent, received);
      plan->run(stream);
      comm::wait(stream, *group);
      stream.copy(here.bytes(), received);
      stream.wait();
      std::size_t n_wrong = 0;
      for (int k = 0; k < n_neighbours; ++k) {
        const core::Slice part = core::partition(n, static_cast<std::size_t>(n_neighbours), static_cast<std::size_t>(k),
                                                 comm::exchange_alignment);
        const int from = (over_->rank() - (k + 1) + n_ranks) % n_ranks;
        for (std::size_t i = part.offset; i < part.end(); ++i) n_wrong += here.bytes()[i] != value(from, i);
      }
      EXPECT_EQ(n_wrong, 0U) << row.name << ", " << n_neighbours;
    }
  }
}

TEST_F(OnDevices, AnExchangeThatFailsIsTold) {
  if (over_->n_ranks() == 1) GTEST_SKIP() << "there are no neighbours";
  const Algorithm& library = comm::choose_for_devices({}, *over_, Devices::own);
  const auto group = library.group(library, *over_);
  const auto plan = group->make_exchange({4096}, 1);
  const runtime::Buffer memory{{8192}, runtime::Memory::device};
  plan->bind(memory.on_device<std::byte>().subspan(0, 4096), memory.on_device<std::byte>().subspan(4096, 4096));
  runtime::Stream stream;
  setenv("LOCKSTEP_HOST_NCCL_FAILS", "1", 1);
  plan->run(stream);
  EXPECT_THROW(comm::wait(stream, *group), core::Error);
  unsetenv("LOCKSTEP_HOST_NCCL_FAILS");
}

TEST_F(OnDevices, MayBeAddedUpOnTheWay) {
  const Call sum{.n_elements = 24};
  EXPECT_FALSE(comm::may_be_added_up_on_the_way(sum, Devices::own));
  EXPECT_TRUE(comm::may_be_added_up_on_the_way(sum, Devices::switched));
  EXPECT_FALSE(comm::may_be_added_up_on_the_way({.collective = Collective::all_gather}, Devices::switched));
  setenv("NCCL_COLLNET_ENABLE", "1", 1);
  EXPECT_TRUE(comm::may_be_added_up_on_the_way(sum, Devices::own));
  unsetenv("NCCL_COLLNET_ENABLE");
}

// With and without a window; a call in memory that is not registered fails.
TEST_F(OnDevices, TheLibraryKnowsMemoryWhileItIsRegistered) {
  const Call call{.n_elements = 1000};
  for (const Algorithm& row : comm::algorithms()) {
    if (!row.is_for_devices() || comm::obstacle(row, call, *over_, Devices::switched)) continue;
    const auto group = row.group(row, *over_);
    if (!group->registers()) {
      EXPECT_TRUE(row.needs == comm::Needs::devices || row.needs == comm::Needs::mpi_processes) << row.name;
      continue;
    }
    for (const comm::Registration how : {comm::Registration::local, comm::Registration::symmetric}) {
      if (comm::registration_obstacle(how)) continue;
      const runtime::Buffer memory = comm::allocate_to_register(core::Bytes{3 * call.bytes().value});
      const auto input = memory.on_device<std::byte>().subspan(0, call.bytes().value);
      const auto output = memory.on_device<std::byte>().subspan(2 * call.bytes().value, call.bytes().value);
      std::vector<std::byte> content(memory.on_device<std::byte>().size(), std::byte{1});
      runtime::Staging{}.fetch(memory.on_device<std::byte>(), content);
      EXPECT_EQ(std::ranges::count(content, std::byte{0}), std::ssize(content));
      const auto plan = group->make_plan(call);
      runtime::Stream stream;
      const auto run = [&] {
        plan->bind(input, output);
        plan->run(stream);
        comm::wait(stream, *group);
      };
      EXPECT_THROW(run(), core::Error) << row.name;
      {
        const auto registered = group->register_memory(memory.on_device<std::byte>(), how);
        ASSERT_TRUE(registered);
        EXPECT_NO_THROW(run()) << row.name;
      }
      EXPECT_THROW(run(), core::Error) << row.name;
    }
  }
}

// If one rank cannot register, none does.
TEST_F(OnDevices, AllRanksRegisterOrNone) {
  if (const auto why_not = comm::registration_obstacle(comm::Registration::symmetric)) GTEST_SKIP() << *why_not;
  const Algorithm& library = comm::choose_for_devices({}, *over_, Devices::own);
  const auto group = library.group(library, *over_);
  const runtime::Buffer memory = comm::allocate_to_register(core::Bytes{4096});
  const bool is_last = over_->rank() == over_->n_ranks() - 1;
  if (is_last) setenv("LOCKSTEP_HOST_NCCL_REGISTERS", "local", 1);
  EXPECT_FALSE(group->register_memory(memory.on_device<std::byte>(), comm::Registration::symmetric));
  EXPECT_TRUE(group->register_memory(memory.on_device<std::byte>(), comm::Registration::local));
  if (is_last) setenv("LOCKSTEP_HOST_NCCL_REGISTERS", "none", 1);
  EXPECT_FALSE(group->register_memory(memory.on_device<std::byte>(), comm::Registration::local));
  unsetenv("LOCKSTEP_HOST_NCCL_REGISTERS");
}

TEST_F(OnDevices, AnErrorOfTheLibraryIsTold) {
  const Algorithm& library = comm::choose_for_devices({}, *over_, Devices::own);
  const auto group = library.group(library, *over_);
  const Call call{.n_elements = 100};
  const auto plan = group->make_plan(call);
  const runtime::Buffer memory{call.bytes(), runtime::Memory::device};
  plan->bind(memory.on_device<std::byte>(), memory.on_device<std::byte>());
  runtime::Stream stream;
  setenv("LOCKSTEP_HOST_NCCL_FAILS", "1", 1);
  plan->run(stream);
  try {
    comm::wait(stream, *group);
    ADD_FAILURE() << "it did not fail";
  } catch (const core::Error& error) {
    const std::string text = error.what();
    for (const std::string& words : {comm::nccl_version(), std::string{"all_reduce"}, std::string{"system error"},
                                     std::string{"a fault that was asked for"}, std::string{"NCCL_DEBUG"}})
      EXPECT_NE(text.find(words), std::string::npos) << text;
  }
  unsetenv("LOCKSTEP_HOST_NCCL_FAILS");
}

}  // namespace
}  // namespace lockstep
