// A reduce_scatter in fixed order gives the bits of the all_reduce in fixed order, and an all_gather undoes its cut.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <stdexcept>
#include <vector>

#include "comm/registry.hpp"
#include "comm/transport_threads.hpp"

namespace lockstep::comm {
namespace {

using Bytes = std::vector<std::byte>;

/// Values whose sums and products depend on the order of operations in every floating-point type.
Bytes input_of(const Call& call, int rank) {
  Bytes bytes(call.bytes().value);
  core::visit(call.dtype, [&]<class T>(std::type_identity<T>) {
    for (std::size_t i = 0; i < call.n_elements; ++i) {
      const auto varied = static_cast<float>((i * 7 + static_cast<std::size_t>(rank) * 11) % 13);
      const T value = static_cast<T>(std::is_integral_v<T> ? varied : 0.5F + varied / 3.0F);
      std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
    }
  });
  return bytes;
}

/// Collective: the output of the algorithm that choose() gives.
Bytes run(Transport& transport, const Call& call, const Bytes& input) {
  const auto plan = make_plan(transport, call);
  Bytes output(call.output(transport.rank(), transport.n_ranks()).count * call.element_size(), std::byte{0xA5});
  plan->bind(input, output);
  plan->run();
  return output;
}

Call as(Call call, Collective collective) {
  call.collective = collective;
  return call;
}

/// Collective. Throws if a part, or what is gathered from the parts, differs from the all_reduce.
void compare(Transport& transport, const Call& call) {
  const Bytes input = input_of(call, transport.rank());
  const Bytes whole = run(transport, call, input);
  const Bytes part = run(transport, as(call, Collective::reduce_scatter), input);
  const Bytes gathered = run(transport, as(call, Collective::all_gather), part);
  const core::Slice mine = as(call, Collective::reduce_scatter).part(transport.rank(), transport.n_ranks());
  const auto where = fmt::format("{} {} of {} elements, grain {}, rank {} of {}", name(call.op), core::name(call.dtype),
                                 call.n_elements, call.grain, transport.rank(), transport.n_ranks());
  const auto expected = std::span{whole}.subspan(mine.offset * call.element_size(), mine.count * call.element_size());
  if (!std::ranges::equal(part, expected)) throw std::runtime_error("another part: " + where);
  if (gathered != whole) throw std::runtime_error("another whole: " + where);
}

class FixedOrder : public testing::TestWithParam<int> {};

TEST_P(FixedOrder, ReduceScatterHasTheBitsOfAllReduce) {
  for (const int n_nodes : {1, GetParam()}) {
    std::vector<int> nodes = one_rank_each(GetParam());
    for (int& node : nodes) node %= n_nodes;
    EXPECT_NO_THROW(run_as_threads(nodes, [](Transport& transport) {
      for (const core::DType dtype : core::all_dtypes)
        for (const ReduceOp op : all_reduce_ops)
          compare(transport, {.dtype = dtype, .op = op, .n_elements = 39, .is_order_fixed = true});
      std::vector<std::size_t> cuts(static_cast<std::size_t>(transport.n_ranks()) + 1, 700);  // all but two are empty
      cuts.front() = 0;
      cuts.back() = 1001;
      compare(transport, {.n_elements = 1001, .is_order_fixed = true, .cuts = cuts});
      for (const std::size_t n : {0, 1, 2, 7, 8, 144, 1001})
        for (const std::size_t grain : {1, 48})
          compare(transport, {.n_elements = n, .grain = grain, .is_order_fixed = true});
    }));
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, FixedOrder, testing::Range(1, 10), testing::PrintToStringParamName{});

/// The tree that recursive halving must build, written down for up to 4 ranks.
float in_tree(const std::vector<float>& of_ranks) {
  const auto at = [&](std::size_t rank) { return of_ranks[rank]; };
  switch (of_ranks.size()) {
    case 1: return at(0);
    case 2: return at(0) + at(1);
    case 3: return (at(0) + at(1)) + at(2);
    default: return (at(0) + at(1)) + (at(2) + at(3));
  }
}

TEST(RecursiveHalving, AddsNeighboursFirst) {
  const Call call{.collective = Collective::reduce_scatter, .n_elements = 101, .is_order_fixed = true};
  for (int n_ranks = 1; n_ranks <= 4; ++n_ranks) {
    std::vector<float> expected;
    bool depends_on_order = false;
    for (std::size_t i = 0; i < call.n_elements; ++i) {
      std::vector<float> of_ranks(static_cast<std::size_t>(n_ranks));
      for (int rank = 0; rank < n_ranks; ++rank)
        std::memcpy(&of_ranks[static_cast<std::size_t>(rank)], input_of(call, rank).data() + i * sizeof(float),
                    sizeof(float));
      expected.push_back(in_tree(of_ranks));
      if (n_ranks == 4)
        depends_on_order |= expected.back() != (of_ranks[0] + of_ranks[2]) + (of_ranks[1] + of_ranks[3]);
    }
    EXPECT_EQ(depends_on_order, n_ranks == 4);
    run_as_threads(one_rank_each(n_ranks), [&](Transport& transport) {
      const Bytes part = run(transport, call, input_of(call, transport.rank()));
      const core::Slice mine = call.part(transport.rank(), n_ranks);
      const auto wanted = std::as_bytes(mine.of(std::span<const float>{expected}));
      EXPECT_TRUE(std::ranges::equal(part, wanted)) << "rank " << transport.rank() << " of " << n_ranks;
    });
  }
}

}  // namespace
}  // namespace lockstep::comm
