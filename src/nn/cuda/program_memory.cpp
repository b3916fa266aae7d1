#include "nn/cuda/program_memory.hpp"

#include <algorithm>

namespace lockstep::nn::cuda {

void ProgramMemory::use(Piece& piece, int time) {
  Lifetime& lifetime = piece.lifetime;
  const bool is_first = lifetime.last < lifetime.first;
  lifetime.first = is_first ? time : std::min(lifetime.first, time);
  lifetime.last = is_first ? time : std::max(lifetime.last, time);
}

void ProgramMemory::begin_turn(int n_turns) {
  ++n_turns_;
  std::erase_if(held_, [&](const Held& held) { return held.turn < n_turns_ - n_turns; });
}

void ProgramMemory::use_held(int time) {
  for (const Held& held : held_) use(*held.piece, time);
}

std::size_t ProgramMemory::plan() {
  constexpr std::size_t alignment = 256;  // as cudaMalloc's; cuDNN's fastest plans require 16
  std::vector<Lifetime> lifetimes;
  for (const Piece& piece : pieces_) lifetimes.push_back(piece.lifetime);
  plan_ = plan_arena(lifetimes, alignment);
  return plan_.n_bytes;
}

void ProgramMemory::place_at(std::byte* arena) {
  std::size_t i = 0;
  for (Piece& piece : pieces_) piece.address = arena + plan_.offsets[i++];
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
