#include <utility>

#include "data/load/store.hpp"

namespace lockstep::data {
namespace {

class SyntheticStore final : public Store {
 public:
  SyntheticStore(std::unique_ptr<Source> source, std::size_t split) : source_{std::move(source)}, split_{split} {}

  void fetch(const Wanted& wanted, Fetched& fetched) override {
    const std::size_t n = wanted.ids.size(), x_bytes = source_->spec().x.bytes(), y_bytes = source_->spec().y.bytes();
    fetched.x.resize(n * x_bytes);
    fetched.y.resize(n * y_bytes);
    fetched.samples.clear();
    for (std::size_t i = 0; i < n; ++i) {
      const std::span x = std::span{fetched.x}.subspan(i * x_bytes, x_bytes);
      const std::span y = std::span{fetched.y}.subspan(i * y_bytes, y_bytes);
      source_->read(split_, wanted.ids[i], 1, x, y);
      fetched.samples.push_back({x, y});
    }
  }

 private:
  const std::unique_ptr<Source> source_;
  const std::size_t split_;
};

}  // namespace

std::unique_ptr<Store> make_synthetic_store(std::unique_ptr<Source> source, std::size_t split) {
  return std::make_unique<SyntheticStore>(std::move(source), split);
}

}  // namespace lockstep::data
