#include "support/device_case.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <vector>

namespace lockstep::support {
namespace {

using comm::Call;
using runtime::Buffer;
using runtime::Memory;

/// Both sides of a call in the whole vector, in bytes.
struct Sides {
  Sides(const comm::Transport& transport, const Call& call) {
    input = in_bytes(call.input(transport.rank(), transport.n_ranks()), call);
    output = in_bytes(call.output(transport.rank(), transport.n_ranks()), call);
  }
  static core::Slice in_bytes(const core::Slice& elements, const Call& call) {
    return {elements.offset * call.element_size(), elements.count * call.element_size()};
  }
  core::Slice input;
  core::Slice output;
};

std::vector<std::byte> made_input(const Call& call, Input kind, int rank, int turn) {
  std::vector<std::byte> bytes(call.bytes().value);
  core::visit(call.dtype, [&]<class T>(std::type_identity<T>) {
    for (std::size_t i = 0; i < call.n_elements; ++i) {
      const auto small = static_cast<float>((i * 7 + static_cast<std::size_t>(3 * rank + turn)) % 5 + 1);
      const float divisor = kind == Input::rounded && !std::is_integral_v<T> ? static_cast<float>(rank + 3) : 1;
      const T value = static_cast<T>(small / divisor);
      std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
    }
  });
  return bytes;
}

std::vector<std::byte> by_host(comm::Plan& plan, const Sides& sides, const std::vector<std::byte>& whole) {
  std::vector<std::byte> output(sides.output.count);
  plan.bind(sides.input.of(std::span<const std::byte>{whole}), output);
  plan.run();
  return output;
}

}  // namespace

void check(comm::Transport& transport, const DeviceCase& which) {
  const Call& call = which.call;
  const Sides sides{transport, call};
  const auto plan = which.group->make_plan(call);
  const Buffer pinned{call.bytes(), Memory::pinned};
  const Buffer whole{call.bytes(), Memory::device};
  const Buffer separate{{sides.output.count}, Memory::device};
  const Buffer result{{sides.output.count}, Memory::pinned};
  const auto at = [&](const core::Slice& side) {
    return runtime::DeviceSpan<std::byte>::at(whole.on_device<std::byte>().data() + side.offset, side.count);
  };
  const auto output = which.in_place ? at(sides.output) : separate.on_device<std::byte>();
  plan->bind(at(sides.input), output);
  runtime::Stream stream;
  for (int turn = 0; turn < 3; ++turn) {
    const std::vector<std::byte> input = made_input(call, which.input, transport.rank(), turn);
    std::ranges::copy(input, pinned.bytes().begin());
    stream.fill(separate.on_device<std::byte>(), std::byte{0xA5});
    stream.copy(whole.on_device<std::byte>(), pinned.bytes());
    if (turn == 0) {
      plan->run(stream);
    } else {
      plan->start(stream);
      plan->finish(stream);
    }
    stream.copy(result.bytes(), output);
    comm::wait(stream, *which.group);
    if (!std::ranges::equal(result.bytes(), by_host(*which.host, sides, input)))
      throw std::runtime_error(fmt::format("{} {} {} {} of {} elements{}: rank {} of {} has other bits in call {}",
                                           which.group->name(), comm::name(call.collective), comm::name(call.op),
                                           core::name(call.dtype), call.n_elements, which.in_place ? ", in place" : "",
                                           transport.rank(), transport.n_ranks(), turn));
  }
}

}  // namespace lockstep::support
