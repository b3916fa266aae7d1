#include "nn/cuda/program_memory.hpp"

#include <algorithm>

namespace lockstep::nn::cuda {

void ProgramMemory::begin_turn(int n_turns) {
  ++n_turns_;
  std::erase_if(held_, [&](const Held& held) { return held.turn < n_turns_ - n_turns; });
}

void ProgramMemory::use_held(int time) {
  for (const Held& held : held_) buffers_.use(held.piece, time);
}

std::size_t ProgramMemory::plan() {
  constexpr std::size_t alignment = 256;  // as cudaMalloc's; cuDNN's fastest plans require 16
  buffers_.place(alignment);
  return buffers_.n_bytes();
}

std::byte* SharedArena::take(std::size_t n_bytes) {
  if (buffers_.empty() || buffers_.back().on_device<std::byte>().size() < n_bytes)
    buffers_.emplace_back(core::Bytes{std::max(n_bytes, expected_)}, runtime::Memory::device);
  return buffers_.back().on_device<std::byte>().data();
}

std::size_t SharedArena::n_bytes() const noexcept {
  std::size_t n = 0;
  for (const runtime::Buffer& buffer : buffers_) n += buffer.on_device<std::byte>().size();
  return buffers_.empty() ? expected_ : n;
}

}  // namespace lockstep::nn::cuda
