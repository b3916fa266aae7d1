// The same measurement of gloo's all-reduces over TCP on the loopback device; the ranks meet in a folder.
// gloo_allreduce --rank R --n-ranks N --store FOLDER --algorithm NAME --bytes 8,16,... --seconds-per-size S
// NAME: ring or bcube (gloo's present interface, which frameworks use), or ring_chunked_polling (its older in-place
// one, the only one that can poll the sockets instead of waiting for an I/O thread).
#include <gloo/allreduce.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/barrier.h>
#include <gloo/config.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/rendezvous/prefix_store.h>
#include <gloo/transport/tcp/device.h>

#include <functional>

#include "measure.hpp"

namespace {

using Operation = std::function<void()>;

class GlooPeer {
 public:
  /// gloo's barrier leaves the ranks tens of microseconds apart, which shorter samples would measure.
  static constexpr double block_below_s = 1e-3;

  explicit GlooPeer(const compare::Options& options)
      : control_(connect(options, "control")),
        data_(connect(options, "data")),
        algorithm_(options.get("--algorithm")),
        barrier_(control_) {
    if (algorithm_ == "ring_chunked_polling") poll_data_sockets();
  }

  [[nodiscard]] int rank() const noexcept { return control_->rank; }
  [[nodiscard]] int n_ranks() const noexcept { return control_->size; }
  void barrier() { gloo::barrier(barrier_); }
  [[nodiscard]] static double core_distance_ns() { return 0; }  // its ranks share no memory
  void max_over_ranks(std::vector<double>& values) const {
    gloo::AllreduceOptions options(control_);
    options.setOutput(values.data(), values.size());
    options.setReduceFunction(static_cast<Reduction>(&gloo::max<double>));
    gloo::allreduce(options);
  }
  [[nodiscard]] Operation plan(const compare::FloatBuffer& input, compare::FloatBuffer& output) const {
    using Algorithm = gloo::AllreduceOptions::Algorithm;
    if (algorithm_ == "ring") return plan_out_of_place(Algorithm::RING, input, output);
    if (algorithm_ == "bcube") return plan_out_of_place(Algorithm::BCUBE, input, output);
    if (algorithm_ == "ring_chunked_polling") return plan_in_place(output);
    throw std::invalid_argument("unknown --algorithm '" + algorithm_ + "': ring, bcube or ring_chunked_polling");
  }

 private:
  using Reduction = void (*)(void*, const void*, const void*, std::size_t);

  static std::shared_ptr<gloo::Context> connect(const compare::Options& options, const std::string& purpose) {
    gloo::transport::tcp::attr loopback;
    loopback.iface = "lo";
    auto device = gloo::transport::tcp::CreateDevice(loopback);
    gloo::rendezvous::FileStore folder(options.get("--store"));
    gloo::rendezvous::PrefixStore store(purpose, folder);
    auto context = std::make_shared<gloo::rendezvous::Context>(std::stoi(options.get("--rank")),
                                                               std::stoi(options.get("--n-ranks")));
    context->connectFullMesh(store, device);
    return context;
  }

  void poll_data_sockets() const {
    for (int peer = 0; peer < n_ranks(); ++peer) {
      if (peer != rank()) data_->getPair(peer)->setSync(true, true);
    }
  }

  /// Makes the options once, which is cheaper than in frameworks, which make them for every call.
  [[nodiscard]] Operation plan_out_of_place(gloo::AllreduceOptions::Algorithm algorithm,
                                            const compare::FloatBuffer& input, compare::FloatBuffer& output) const {
    auto options = std::make_shared<gloo::AllreduceOptions>(data_);
    options->setAlgorithm(algorithm);
    options->setInput(input.data(), input.n_elements());
    options->setOutput(output.data(), output.n_elements());
    options->setReduceFunction(static_cast<Reduction>(&gloo::sum<float>));
    return [options] { gloo::allreduce(*options); };
  }

  /// Repeated calls add sums up to infinity, which takes no longer to add than any other number.
  [[nodiscard]] Operation plan_in_place(compare::FloatBuffer& data) const {
    auto algorithm = std::make_shared<gloo::AllreduceRingChunked<float>>(data_, std::vector<float*>{data.data()},
                                                                         static_cast<int>(data.n_elements()));
    return [algorithm] { algorithm->run(); };
  }

  std::shared_ptr<gloo::Context> control_;  ///< barriers and results
  std::shared_ptr<gloo::Context> data_;     ///< the measured calls
  std::string algorithm_;
  gloo::BarrierOptions barrier_;
};

void run(const compare::Options& options) {
  GlooPeer peer(options);
  if (peer.rank() == 0) {
    std::printf("{\"library\": \"gloo %d.%d.%d\"}\n", GLOO_VERSION_MAJOR, GLOO_VERSION_MINOR, GLOO_VERSION_PATCH);
  }
  const double seconds = std::stod(options.get("--seconds-per-size"));
  for (const std::size_t bytes : options.sizes()) compare::measure(peer, bytes, seconds);
  peer.barrier();
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(compare::Options(argc, argv));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gloo_allreduce: %s\n", error.what());
    return 2;
  }
}
