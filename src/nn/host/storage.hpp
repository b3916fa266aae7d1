// The places of all data of one program: buffers in its arena, slots of parameters and gradients, the input.
// Invariant: a buffer lives from its first use to its last; addresses change only in rebase() and set_input().
// Used by nn/host: layers request buffers and memory while a program is built, and addresses while it runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "nn/executor.hpp"
#include "nn/host/dnnl_primitives.hpp"
#include "nn/plan/arena_plan.hpp"

namespace lockstep::nn::host {

enum class Space : std::uint8_t { arena, parameters, gradients, input };

struct Place {
  Space space = Space::arena;
  std::size_t index = 0;   ///< buffer or parameter
  std::size_t offset = 0;  ///< within the buffer or slot, in bytes
};

/// Values in memory.
struct Tensor {
  Desc desc{};
  Place place{};
};

class Storage {
 public:
  /// `slots`: by parameter, with addresses from the first rebase() on.
  Storage(dnnl::engine engine, std::span<const SlotPlace> slots) : engine_{std::move(engine)}, slots_{slots} {}

  /// Adds a buffer, which has no place until it is used.
  [[nodiscard]] Place add(std::size_t n_bytes) { return {Space::arena, buffers_.add(n_bytes), 0}; }
  void use(const Place& place, int time) {
    if (place.space == Space::arena) buffers_.use(place.index, time);
  }
  void forget_between(const Place& place) { buffers_.forget_between(place.index); }
  /// Whether the buffer's last use so far is at `time`.
  [[nodiscard]] bool is_used(const Place& place, int time) const { return buffers_.last_use(place.index) == time; }
  /// Makes memory for a primitive that runs at `time`; its address is updated when addresses change.
  [[nodiscard]] dnnl::memory memory(const Desc& desc, const Place& place, int time);

  /// Gives every buffer its place, after all uses.
  void plan() { buffers_.place(64); }
  [[nodiscard]] std::size_t n_bytes() const noexcept { return buffers_.n_bytes(); }

  void rebase(std::byte* arena);
  void set_input(const std::byte* input);

  template <class T>
  [[nodiscard]] T* at(const Place& place) const {
    return reinterpret_cast<T*>(address(place));
  }

 private:
  struct Held {
    dnnl::memory memory;
    Place place;
  };

  [[nodiscard]] std::byte* address(const Place& place) const;

  dnnl::engine engine_;
  std::span<const SlotPlace> slots_;
  Buffers buffers_{};
  std::vector<Held> held_{}, held_inputs_{};
  std::byte* arena_ = nullptr;
  std::byte* input_ = nullptr;
};

}  // namespace lockstep::nn::host
