#include <cuda.h>
#include <cuda_runtime.h>
#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <fstream>

#include "core/error.hpp"
#include "core/handle.hpp"
#include "core/printable.hpp"
#include "runtime/gpu.hpp"
#include "runtime/kernel/launch.hpp"
#include "runtime/processor_list.hpp"

namespace lockstep::runtime {
namespace {

void check(cudaError_t status, std::string_view what) {
  if (status != cudaSuccess)
    core::fail_system(fmt::format("{}: {} ({})", what, cudaGetErrorString(status), cudaGetErrorName(status)));
}

// Interprets the result of a query that does not wait.
bool is_over(cudaError_t status) {
  if (status == cudaErrorNotReady) return false;
  check(status, "waiting for the GPU");
  return true;
}

// 13000 means 13.0; 0: none.
std::string version_text(int version) {
  return version == 0 ? std::string{} : fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

std::string uuid_text(const cudaUUID_t& uuid) {
  std::string text = "GPU";
  for (std::size_t i = 0; i < sizeof uuid.bytes; ++i) {
    if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", static_cast<unsigned char>(uuid.bytes[i]));
  }
  return text;
}

// Reads it from Linux; containers may hide it.
std::vector<int> read_processors_near(const std::string& pci) {
  std::ifstream file{fmt::format("/sys/bus/pci/devices/{}/local_cpulist", pci)};
  std::string list;
  std::getline(file, list);
  return parse_processors(list);
}

#if CUDART_VERSION >= 12010
// The runtime has no function for this, and this program is not linked with the driver.
template <class Function>
Function driver_function(const char* name) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult result{};
#if CUDART_VERSION >= 12050
  const auto status = cudaGetDriverEntryPointByVersion(name, &function, 12010, cudaEnableDefault, &result);
#else
  const auto status = cudaGetDriverEntryPoint(name, &function, cudaEnableDefault, &result);
#endif
  return status == cudaSuccess && result == cudaDriverEntryPointSuccess ? reinterpret_cast<Function>(function)
                                                                        : nullptr;
}

// An older driver does not know this attribute.
bool has_switches(int number) {
  const auto find = driver_function<decltype(&cuDeviceGet)>("cuDeviceGet");
  const auto ask = driver_function<decltype(&cuDeviceGetAttribute)>("cuDeviceGetAttribute");
  CUdevice device{};
  int answer = 0;
  return find != nullptr && ask != nullptr && find(&device, number) == CUDA_SUCCESS &&
         ask(&answer, CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, device) == CUDA_SUCCESS && answer != 0;
}
#else
bool has_switches(int) { return false; }
#endif

Gpu describe(int number) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, number), fmt::format("asking for the properties of GPU {}", number));
  const std::string pci =
      fmt::format("{:04x}:{:02x}:{:02x}.0", properties.pciDomainID, properties.pciBusID, properties.pciDeviceID);
  return {.name = properties.name,
          .uuid = uuid_text(properties.uuid),
          .pci = pci,
          .memory = core::Bytes{properties.totalGlobalMem},
          .cache = core::Bytes{static_cast<std::uint64_t>(properties.l2CacheSize)},
          .architecture = 10 * properties.major + properties.minor,
          .n_multiprocessors = properties.multiProcessorCount,
          .processors = read_processors_near(pci),
          .has_switches = has_switches(number)};
}

// Whether a program can be built for this driver: the oldest supported toolkit is 12.0.
bool is_of_use(int driver) { return driver >= 12000; }

// The variable that hides the GPUs if it is empty or names numbers that do not exist; its value comes from the user.
std::string visible_devices() {
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  return visible == nullptr ? "" : fmt::format(", with CUDA_VISIBLE_DEVICES='{}'", core::printable(visible));
}

// Describes the obstacle in a user's words, with a fix.
void explain(GpuSurvey& survey, int driver, cudaError_t status) {
  switch (status) {
    case cudaErrorInsufficientDriver:
      if (survey.driver.empty()) {
        survey.obstacle = "no NVIDIA driver (libcuda.so.1) on this machine";
        survey.fix = "use a node with GPUs; start a container with access to the GPUs (apptainer --nv)";
      } else {
        survey.obstacle = fmt::format("the NVIDIA driver supports CUDA {}, but this program needs CUDA {}",
                                      survey.driver, survey.toolkit);
        survey.fix =
            is_of_use(driver)
                ? fmt::format("build with CUDA {}, or ask the administrator to update the driver", survey.driver)
                : fmt::format("ask the administrator for a driver for CUDA {}", survey.toolkit);
      }
      break;
    case cudaErrorNoDevice:
      survey.obstacle = "the NVIDIA driver shows no GPU to this process" + visible_devices();
      survey.fix = "ask the batch system for GPUs (--gpus-per-node, ngpus); check CUDA_VISIBLE_DEVICES";
      break;
    default:
      survey.obstacle = fmt::format("the NVIDIA driver reports an error: {} ({})", cudaGetErrorString(status),
                                    cudaGetErrorName(status));
      survey.fix = "run nvidia-smi on this node for details";
  }
}

struct StreamPolicy {
  using Raw = cudaStream_t;
  static Raw null() noexcept { return nullptr; }
  static void destroy(Raw raw) noexcept { cudaStreamDestroy(raw); }
};
struct EventPolicy {
  using Raw = cudaEvent_t;
  static Raw null() noexcept { return nullptr; }
  static void destroy(Raw raw) noexcept { cudaEventDestroy(raw); }
};

struct GraphPolicy {
  using Raw = cudaGraph_t;
  static Raw null() noexcept { return nullptr; }
  static void destroy(Raw raw) noexcept { cudaGraphDestroy(raw); }
};
struct GraphExecPolicy {
  using Raw = cudaGraphExec_t;
  static Raw null() noexcept { return nullptr; }
  static void destroy(Raw raw) noexcept { cudaGraphExecDestroy(raw); }
};

// Kernels keep the priority of the stream in which they were recorded.
class CudaGraph final : public Graph {
 public:
  explicit CudaGraph(cudaGraph_t of) {
    cudaGraphExec_t raw = nullptr;
    check(cudaGraphInstantiate(&raw, of, cudaGraphInstantiateFlagUseNodePriority), "making a graph");
    exec_ = core::UniqueHandle<GraphExecPolicy>{raw};
  }
  [[nodiscard]] cudaGraphExec_t get() const noexcept { return exec_.get(); }

 private:
  core::UniqueHandle<GraphExecPolicy> exec_;
};

class CudaMark final : public Mark {
 public:
  CudaMark(cudaStream_t stream, unsigned flags) {
    cudaEvent_t raw = nullptr;
    check(cudaEventCreateWithFlags(&raw, flags), "creating an event");
    event_ = core::UniqueHandle<EventPolicy>{raw};
    check(cudaEventRecord(raw, stream), "recording an event");
  }
  [[nodiscard]] cudaEvent_t get() const noexcept { return event_.get(); }
  void wait() const override { check(cudaEventSynchronize(get()), "waiting for the GPU"); }
  [[nodiscard]] bool is_done() const override { return is_over(cudaEventQuery(get())); }
  [[nodiscard]] core::Seconds since(const Mark& earlier) const override {
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, static_cast<const CudaMark&>(earlier).get(), get()), "timing");
    return {static_cast<double>(milliseconds) * 1e-3};
  }

 private:
  core::UniqueHandle<EventPolicy> event_;
};

class CudaQueue final : public Queue {
 public:
  // The default stream does not order it, because nothing uses that stream.
  explicit CudaQueue(Priority priority) {
    int usual = 0, first = 0;
    check(cudaDeviceGetStreamPriorityRange(&usual, &first), "asking for priorities");
    cudaStream_t raw = nullptr;
    check(cudaStreamCreateWithPriority(&raw, cudaStreamNonBlocking, priority == Priority::first ? first : usual),
          "creating a stream");
    stream_ = core::UniqueHandle<StreamPolicy>{raw};
  }

  void enqueue(const kernel::Operation& operation) override {
    core::require(operation.on_cuda != nullptr, "the kernel was compiled by nvcc");
    check(static_cast<cudaError_t>(operation.on_cuda(operation.body.data(), operation.grid, stream_.get())),
          operation.name);
  }
  void copy(void* to, const void* from, std::size_t n_bytes) override {
    check(cudaMemcpyAsync(to, from, n_bytes, cudaMemcpyDefault, stream_.get()), "copying");
  }
  void fill(void* to, std::byte value, std::size_t n_bytes) override {
    check(cudaMemsetAsync(to, std::to_integer<int>(value), n_bytes, stream_.get()), "setting memory");
  }
  std::unique_ptr<Mark> mark() override { return std::make_unique<CudaMark>(stream_.get(), cudaEventDisableTiming); }
  std::unique_ptr<Mark> mark_time() override { return std::make_unique<CudaMark>(stream_.get(), cudaEventDefault); }
  void wait_for(const Mark& mark) override {
    check(cudaStreamWaitEvent(stream_.get(), static_cast<const CudaMark&>(mark).get(), 0), "waiting for an event");
  }
  void wait() override { check(cudaStreamSynchronize(stream_.get()), "waiting for the GPU"); }
  bool is_done() override { return is_over(cudaStreamQuery(stream_.get())); }
  // Calls of CUDA by other threads are allowed meanwhile.
  void begin_recording() override {
    check(cudaStreamBeginCapture(stream_.get(), cudaStreamCaptureModeThreadLocal), "recording");
  }
  std::unique_ptr<Graph> end_recording() override {
    cudaGraph_t raw = nullptr;
    check(cudaStreamEndCapture(stream_.get(), &raw), "recording");
    const core::UniqueHandle<GraphPolicy> graph{raw};
    return std::make_unique<CudaGraph>(graph.get());
  }
  void replay(const Graph& graph) override {
    check(cudaGraphLaunch(static_cast<const CudaGraph&>(graph).get(), stream_.get()), "replaying");
  }

 private:
  core::UniqueHandle<StreamPolicy> stream_;
};

class CudaDevice final : public Accelerator {
 public:
  explicit CudaDevice(int number) { check(cudaSetDevice(number), fmt::format("opening GPU {}", number)); }

  std::byte* allocate(std::size_t n_bytes, Memory memory) override {
    void* data = nullptr;
    const cudaError_t status = memory == Memory::pinned ? cudaMallocHost(&data, n_bytes) : cudaMalloc(&data, n_bytes);
    if (status == cudaErrorMemoryAllocation) return nullptr;
    check(status, "allocating memory");
    if (memory == Memory::pinned) {
      std::memset(data, 0, n_bytes);
    } else {
      check(cudaMemset(data, 0, n_bytes), "setting memory");
      check(cudaStreamSynchronize(cudaStreamLegacy),
            "setting memory");  // it returns early, and our streams do not wait
    }
    return static_cast<std::byte*>(data);
  }
  void release(std::byte* data, Memory memory) noexcept override {
    static_cast<void>(memory == Memory::pinned ? cudaFreeHost(data) : cudaFree(data));
  }
  std::unique_ptr<Queue> open_queue(Priority priority) override { return std::make_unique<CudaQueue>(priority); }
  core::Bytes available() override {
    std::size_t left = 0, total = 0;
    check(cudaMemGetInfo(&left, &total), "asking how much memory is left");
    return {left};
  }
};

}  // namespace

GpuSurvey survey_gpus() {
  GpuSurvey survey;
  int version = 0;
  static_cast<void>(cudaRuntimeGetVersion(&version));
  survey.toolkit = version_text(version);
  int driver = 0;
  static_cast<void>(cudaDriverGetVersion(&driver));
  survey.driver = version_text(driver);
  int n_gpus = 0;
  const cudaError_t status = cudaGetDeviceCount(&n_gpus);
  if (status != cudaSuccess || n_gpus == 0) {
    explain(survey, driver, status == cudaSuccess ? cudaErrorNoDevice : status);
    return survey;
  }
  try {
    for (int number = 0; number < n_gpus; ++number) survey.gpus.push_back(describe(number));
  } catch (const core::Error& error) {
    survey.gpus.clear();
    survey.obstacle = error.problem().what;
    survey.fix = "run nvidia-smi on this node for details";
  }
  return survey;
}

std::unique_ptr<Accelerator> open_gpu(int number) { return std::make_unique<CudaDevice>(number); }

}  // namespace lockstep::runtime
