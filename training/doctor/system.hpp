// Facts of a node from /sys and /proc, read below any root: the system's own, or that of a test.
// Invariant: a file that is missing or has other content leaves the answer unknown; nothing hangs.
// Used by collect.cpp.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "training/doctor/facts.hpp"

namespace lockstep::training::doctor {

/// Returns nothing if it cannot be read.
[[nodiscard]] std::string first_line(const std::filesystem::path& file);

/// Reads network adapters by name from /sys/class/infiniband, /sys/class/cxi and /sys/class/net. Leaves out Ethernet
/// interfaces that are down.
[[nodiscard]] std::vector<Port> read_ports(const std::filesystem::path& root);

/// Models of the NVIDIA devices, from the driver; "NVIDIA device" if only /dev shows one.
[[nodiscard]] std::vector<std::string> read_gpus(const std::filesystem::path& root);

/// Frequency governors of all processors, each once.
[[nodiscard]] std::vector<std::string> read_governors(const std::filesystem::path& root);

/// The word in brackets of "always [madvise] never"; empty if there is none.
[[nodiscard]] std::string read_huge_pages(const std::filesystem::path& root);

/// 0, 1, or -1 if the kernel has none.
[[nodiscard]] int read_numa_balancing(const std::filesystem::path& root);
[[nodiscard]] int count_numa_nodes(const std::filesystem::path& root);

/// Processors that the control groups of this process, version 1 or 2, allow; 0: no limit.
[[nodiscard]] double read_cpu_quota(const std::filesystem::path& root);

/// Finds, in the text of /proc/PID/maps, files of shared libraries that matter to a job, each once, sorted by name.
/// Without size and time.
[[nodiscard]] std::vector<Library> find_libraries(std::string_view maps);

/// The file system with the number that statfs() returns: "Lustre", "NFS", "tmpfs"; "type 0x1234" if it is unknown.
[[nodiscard]] std::string name_file_system(long type);
/// Whether it is on other machines.
[[nodiscard]] bool is_network_file_system(long type) noexcept;

}  // namespace lockstep::training::doctor
