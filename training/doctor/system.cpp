#include "training/doctor/system.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <limits>
#include <set>
#include <sstream>
#include <system_error>

namespace lockstep::training::doctor {
namespace {

namespace fs = std::filesystem;

constexpr int ethernet_type = 1;  // ARPHRD_ETHER

/// Names in a folder, sorted; none if it cannot be listed.
std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry{folder, error}; !error && entry != fs::directory_iterator{}; entry.increment(error))
    names.push_back(entry->path().filename().string());
  std::ranges::sort(names);
  return names;
}

/// The number at the begin of a text.
std::optional<double> number_in(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end != text.data() ? std::optional{value} : std::nullopt;
}

/// Reads "100 Gb/sec (4X EDR)" and "4: ACTIVE".
Port read_verbs_port(const fs::path& port, const std::string& device, const std::string& number) {
  const std::string layer = first_line(port / "link_layer");
  std::string kind = layer == "Ethernet" ? "RoCE" : "InfiniBand";
  if (device.starts_with("hfi1")) kind = "Omni-Path";
  return {.name = fmt::format("{}/{}", device, number),
          .kind = kind,
          .is_active = first_line(port / "state").find("ACTIVE") != std::string::npos,
          .gbps = number_in(first_line(port / "rate")).value_or(0)};
}

void add_verbs(const fs::path& root, std::vector<Port>& ports) {
  const fs::path adapters = root / "sys/class/infiniband";
  for (const std::string& device : names_in(adapters))
    for (const std::string& number : names_in(adapters / device / "ports"))
      ports.push_back(read_verbs_port(adapters / device / "ports" / number, device, number));
}

/// The speed of a network interface in Mb/s; -1 without a link.
double interface_gbps(const fs::path& interface) {
  return std::max(0.0, number_in(first_line(interface / "speed")).value_or(0)) / 1000;
}

/// Slingshot adapters: their network interface shows whether they are up.
void add_slingshot(const fs::path& root, std::vector<Port>& ports) {
  for (const std::string& device : names_in(root / "sys/class/cxi")) {
    Port port{.name = device, .kind = "Slingshot"};
    const fs::path interfaces = root / "sys/class/cxi" / device / "device/net";
    for (const std::string& name : names_in(interfaces)) {
      port.is_active = port.is_active || first_line(interfaces / name / "operstate") == "up";
      port.gbps = std::max(port.gbps, interface_gbps(interfaces / name));
    }
    ports.push_back(port);
  }
}

/// Interfaces of real devices: no bridges, and none of containers.
void add_ethernet(const fs::path& root, std::vector<Port>& ports) {
  const fs::path interfaces = root / "sys/class/net";
  for (const std::string& name : names_in(interfaces)) {
    const bool is_ethernet = number_in(first_line(interfaces / name / "type")) == ethernet_type;
    std::error_code error;
    if (!is_ethernet || first_line(interfaces / name / "operstate") != "up") continue;
    if (name.starts_with("hsn") || !fs::exists(interfaces / name / "device", error)) continue;
    ports.push_back({.name = name, .kind = "Ethernet", .is_active = true, .gbps = interface_gbps(interfaces / name)});
  }
}

/// The value after "Model:" in the driver's file about a GPU.
std::string model_in(const fs::path& information) {
  std::ifstream file{information};
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("Model:")) continue;
    const std::size_t begin = line.find_first_not_of(" \t", line.find(':') + 1);
    if (begin != std::string::npos) return line.substr(begin);
  }
  return "NVIDIA device";
}

bool is_device_file(const std::string& name) {
  constexpr std::string_view begin = "nvidia";
  return name.starts_with(begin) && name.size() > begin.size() &&
         name.find_first_not_of("0123456789", begin.size()) == std::string::npos;
}

/// Quota over period: from "200000 100000" (version 2), or from two files (version 1).
std::optional<double> quota_of(const fs::path& group) {
  double quota = 0, period = 0;
  if (std::ifstream{group / "cpu.max"} >> quota >> period && period > 0) return quota / period;
  if (std::ifstream{group / "cpu.cfs_quota_us"} >> quota && std::ifstream{group / "cpu.cfs_period_us"} >> period &&
      quota > 0 && period > 0)
    return quota / period;
  return std::nullopt;
}

/// The minimum over a group and its parents, which a container may not see: then its own group is the top.
double least_quota(const fs::path& mount, fs::path group) {
  double least = std::numeric_limits<double>::infinity();
  for (;; group = group.parent_path()) {
    least = std::min(least, quota_of(mount / group.relative_path()).value_or(least));
    if (!group.has_relative_path()) return least;
  }
}

constexpr std::array<std::string_view, 20> library_beginnings{
    "libmpi.", "libmpi_",   "libmpich", "libhdf5",  "libdnnl",    "libkokkos", "libucp",
    "libucs",  "libfabric", "libpsm2.", "libcxi",   "libibverbs", "libpmix",   "libpmi",
    "libnccl", "libcudart", "libcudnn", "libnvrtc", "libgomp",    "mca_pml_"};

bool matters(std::string_view name) {
  return std::ranges::any_of(library_beginnings, [name](std::string_view begin) { return name.starts_with(begin); }) ||
         name.starts_with("mca_mtl_") || name.starts_with("mca_btl_");
}

struct FileSystem {
  long type;
  std::string_view name;
  bool is_network;
};
/// From linux/magic.h and the sources of file systems.
constexpr std::array<FileSystem, 17> file_systems{{{0x6969, "NFS", true},
                                                   {0x0BD00BD0, "Lustre", true},
                                                   {0x47504653, "GPFS", true},
                                                   {0x19830326, "BeeGFS", true},
                                                   {0x00C36400, "Ceph", true},
                                                   {0x20030528, "OrangeFS", true},
                                                   {0x7c7c6673, "DVS", true},
                                                   {static_cast<long>(0xFE534D42), "SMB", true},
                                                   {static_cast<long>(0xFF534D42), "CIFS", true},
                                                   {0x01021997, "9P", true},
                                                   {0x65735546, "FUSE", true},
                                                   {0x01021994, "tmpfs", false},
                                                   {0xEF53, "ext4", false},
                                                   {0x58465342, "XFS", false},
                                                   {static_cast<long>(0x9123683E), "Btrfs", false},
                                                   {0x2FC12FC1, "ZFS", false},
                                                   {0x794C7630, "overlay", false}}};

const FileSystem* find_file_system(long type) noexcept {
  const auto found = std::ranges::find(file_systems, type, &FileSystem::type);
  return found == file_systems.end() ? nullptr : &*found;
}

}  // namespace

std::string first_line(const fs::path& file) {
  std::ifstream in{file};
  std::string line;
  std::getline(in, line);
  return line;
}

std::vector<Port> read_ports(const fs::path& root) {
  std::vector<Port> ports;
  add_verbs(root, ports);
  add_slingshot(root, ports);
  add_ethernet(root, ports);
  return ports;
}

std::vector<std::string> read_gpus(const fs::path& root) {
  std::vector<std::string> models;
  const fs::path known = root / "proc/driver/nvidia/gpus";
  for (const std::string& bus : names_in(known)) models.push_back(model_in(known / bus / "information"));
  if (!models.empty()) return models;
  const std::vector<std::string> files = names_in(root / "dev");
  models.assign(static_cast<std::size_t>(std::ranges::count_if(files, is_device_file)), "NVIDIA device");
  return models;
}

std::vector<std::string> read_governors(const fs::path& root) {
  const fs::path policies = root / "sys/devices/system/cpu/cpufreq";
  std::set<std::string> governors;
  for (const std::string& policy : names_in(policies))
    governors.insert(first_line(policies / policy / "scaling_governor"));
  governors.erase("");
  return {governors.begin(), governors.end()};
}

std::string read_huge_pages(const fs::path& root) {
  const std::string line = first_line(root / "sys/kernel/mm/transparent_hugepage/enabled");
  const std::size_t open = line.find('['), close = line.find(']');
  return open < close && close != std::string::npos ? line.substr(open + 1, close - open - 1) : "";
}

int read_numa_balancing(const fs::path& root) {
  const auto value = number_in(first_line(root / "proc/sys/kernel/numa_balancing"));
  if (!value) return -1;
  return *value > 0 ? 1 : 0;
}

int count_numa_nodes(const fs::path& root) {
  const auto is_node = [](const std::string& name) {
    return name.starts_with("node") && name.size() > 4 && name.find_first_not_of("0123456789", 4) == std::string::npos;
  };
  return static_cast<int>(std::ranges::count_if(names_in(root / "sys/devices/system/node"), is_node));
}

double read_cpu_quota(const fs::path& root) {
  double least = std::numeric_limits<double>::infinity();
  std::ifstream file{root / "proc/self/cgroup"};
  for (std::string line; std::getline(file, line);) {  // id:controllers:/path
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const fs::path group = line.substr(second + 1);
    if (controllers.empty()) least = std::min(least, least_quota(root / "sys/fs/cgroup", group));
    if (("," + controllers + ",").find(",cpu,") != std::string::npos)
      least = std::min(least, least_quota(root / "sys/fs/cgroup/cpu", group));
  }
  return least < std::numeric_limits<double>::infinity() ? least : 0;
}

std::vector<Library> find_libraries(std::string_view maps) {
  std::vector<Library> libraries;
  std::istringstream lines{std::string{maps}};
  for (std::string line; std::getline(lines, line);) {  // address permissions offset device inode   /path
    const std::size_t begin = line.find('/');
    if (begin == std::string::npos) continue;
    const std::string path = line.substr(begin), name = fs::path{path}.filename().string();
    if (!matters(name) || name.find(".so") == std::string::npos) continue;
    if (std::ranges::find(libraries, path, &Library::path) == libraries.end())
      libraries.push_back({.name = name, .path = path});
  }
  std::ranges::sort(libraries, {}, &Library::name);
  return libraries;
}

std::string name_file_system(long type) {
  const FileSystem* const known = find_file_system(type);
  return known != nullptr ? std::string{known->name} : fmt::format("type {:#x}", type);
}

bool is_network_file_system(long type) noexcept {
  const FileSystem* const known = find_file_system(type);
  return known != nullptr && known->is_network;
}

}  // namespace lockstep::training::doctor
