#include "runtime/device.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <utility>

#include "core/error.hpp"
#include "runtime/accelerator.hpp"
#include "runtime/kernel/launch.hpp"

namespace lockstep::runtime {
namespace {

std::unique_ptr<Accelerator>& accelerator_in_use() noexcept {
  static std::unique_ptr<Accelerator> in_use;
  return in_use;
}

// Returns null if there is not enough memory.
std::byte* allocate_pages(std::size_t size) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t pages = size / page + (size % page != 0 ? 1 : 0);
  if (pages > std::numeric_limits<std::size_t>::max() / page) return nullptr;
  auto* const data = static_cast<std::byte*>(std::aligned_alloc(page, pages * page));
  if (data != nullptr) std::memset(data, 0, size);
  return data;
}

}  // namespace

core::Seconds host_clock() {
  return {std::chrono::duration<double>{std::chrono::steady_clock::now().time_since_epoch()}.count()};
}

Accelerator* accelerator() noexcept { return accelerator_in_use().get(); }

std::unique_ptr<Accelerator> exchange_accelerator(std::unique_ptr<Accelerator> next) noexcept {
  return std::exchange(accelerator_in_use(), std::move(next));
}

bool is_host_the_device() noexcept { return accelerator() == nullptr; }

Buffer::Buffer(core::Bytes size, Memory memory)
    : data_{nullptr, Free{memory, memory == Memory::host ? nullptr : accelerator()}}, size_{size.value} {
  if (size_ == 0) return;
  Accelerator* const of = data_.get_deleter().of;
  data_.reset(of != nullptr ? of->allocate(size_, memory) : allocate_pages(size_));
  if (data_) return;
  if (of != nullptr && memory == Memory::device)
    core::fail_system(fmt::format("cannot allocate {} of the GPU's memory, which has {} left", core::format_bytes(size),
                                  core::format_bytes(of->available())));
  core::fail_system(fmt::format("cannot allocate a buffer of {}", core::format_bytes(size)));
}

Buffer Buffer::owning(std::byte* data, core::Bytes size, void (*release)(std::byte* data) noexcept) {
  Buffer buffer;
  buffer.data_ = {data, Free{.memory = Memory::device, .release = release}};
  buffer.size_ = size.value;
  return buffer;
}

void Buffer::Free::operator()(std::byte* data) const noexcept {
  if (release != nullptr)
    release(data);
  else if (of != nullptr)
    of->release(data, memory);
  else
    std::free(data);
}

Event::Event() noexcept = default;
Event::~Event() = default;
Event::Event(Event&&) noexcept = default;
Event& Event::operator=(Event&&) noexcept = default;

void Event::wait() const {
  if (mark_) mark_->wait();
}

bool Event::is_done() const { return !mark_ || mark_->is_done(); }

core::Seconds Event::since(const Event& earlier) const {
  if (!mark_ || !earlier.mark_) return {host_seconds_ - earlier.host_seconds_};
  return mark_->since(*earlier.mark_);
}

Recording::Recording() noexcept = default;
Recording::~Recording() = default;
Recording::Recording(Recording&&) noexcept = default;
Recording& Recording::operator=(Recording&&) noexcept = default;

Stream::Stream() : Stream{Priority::usual} {}
Stream::Stream(Priority priority) : queue_{is_host_the_device() ? nullptr : accelerator()->open_queue(priority)} {}
Stream::~Stream() = default;
Stream::Stream(Stream&&) noexcept = default;
Stream& Stream::operator=(Stream&&) noexcept = default;

void Stream::enqueue(const kernel::Operation& operation) {
  if (queue_)
    queue_->enqueue(operation);
  else
    operation.on_host(operation.body.data(), operation.grid, kernel::ThreadOrder::ascending);
}

void Stream::copy_bytes(void* to, const void* from, std::size_t n_to, std::size_t n_from) {
  core::require(n_to == n_from, "source and target of a copy have the same size");
  if (n_from == 0) return;
  if (queue_)
    queue_->copy(to, from, n_from);
  else
    std::memcpy(to, from, n_from);
}

void Stream::copy(DeviceSpan<std::byte> to, std::span<const std::byte> from) {
  copy_bytes(to.data(), from.data(), to.size(), from.size());
}
void Stream::copy(std::span<std::byte> to, DeviceSpan<const std::byte> from) {
  copy_bytes(to.data(), from.data(), to.size(), from.size());
}
void Stream::copy(DeviceSpan<std::byte> to, DeviceSpan<const std::byte> from) {
  copy_bytes(to.data(), from.data(), to.size(), from.size());
}

void Stream::fill(DeviceSpan<std::byte> to, std::byte value) {
  if (to.size() == 0) return;
  if (queue_)
    queue_->fill(to.data(), value, to.size());
  else
    std::memset(to.data(), std::to_integer<int>(value), to.size());
}

Event Stream::mark() {
  Event event;
  if (queue_) event.mark_ = queue_->mark();
  return event;
}

Event Stream::mark_time() {
  Event event;
  if (queue_)
    event.mark_ = queue_->mark_time();
  else
    event.host_seconds_ = host_clock().value;
  return event;
}

void Stream::wait_for(const Event& event) {
  if (queue_ && event.mark_) queue_->wait_for(*event.mark_);
}

void Stream::wait() const {
  if (queue_) queue_->wait();
}

bool Stream::is_done() const { return !queue_ || queue_->is_done(); }

void Stream::begin_recording() {
  core::require(queue_ != nullptr, "only a stream of a device can be recorded");
  queue_->begin_recording();
}

Recording Stream::end_recording() {
  Recording recording;
  recording.graph_ = queue_->end_recording();
  return recording;
}

void Stream::abandon_recording() noexcept {
  try {
    static_cast<void>(queue_->end_recording());
  } catch (const core::Error&) {  // the recording is not used
  }
}

void Stream::replay(const Recording& recording) {
  core::require(recording.graph_ != nullptr, "the recording is not empty");
  queue_->replay(*recording.graph_);
}

}  // namespace lockstep::runtime
