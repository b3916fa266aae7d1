#include "training/doctor/system.hpp"

#include <gtest/gtest.h>

#include "unit/io/temporary_folder.hpp"

namespace lockstep::training::doctor {
namespace {

namespace fs = std::filesystem;

/// A made-up root.
class Tree {
 public:
  void put(const std::string& path, const std::string& text) const {
    const fs::path file = fs::path{folder_.path()} / path;
    fs::create_directories(file.parent_path());
    std::ofstream{file} << text;
  }
  [[nodiscard]] fs::path root() const { return folder_.path(); }

 private:
  io::TemporaryFolder folder_{};
};

TEST(DoctorSystem, KnowsNothingOfAnEmptyTree) {
  const Tree tree;
  EXPECT_TRUE(read_ports(tree.root()).empty());
  EXPECT_TRUE(read_gpus(tree.root()).empty());
  EXPECT_TRUE(read_governors(tree.root()).empty());
  EXPECT_EQ(read_huge_pages(tree.root()), "");
  EXPECT_EQ(read_numa_balancing(tree.root()), -1);
  EXPECT_EQ(count_numa_nodes(tree.root()), 0);
  EXPECT_EQ(read_cpu_quota(tree.root()), 0);
}

TEST(DoctorSystem, FindsPortsOfInfiniBandAndRoce) {
  const Tree tree;
  const std::string mlx = "sys/class/infiniband/mlx5_0/ports/1/", roce = "sys/class/infiniband/mlx5_1/ports/1/",
                    omni = "sys/class/infiniband/hfi1_0/ports/1/";
  tree.put(mlx + "rate", "200 Gb/sec (4X HDR)\n");
  tree.put(mlx + "state", "4: ACTIVE\n");
  tree.put(mlx + "link_layer", "InfiniBand\n");
  tree.put(roce + "rate", "25 Gb/sec (1X EDR)\n");
  tree.put(roce + "state", "1: DOWN\n");
  tree.put(roce + "link_layer", "Ethernet\n");
  tree.put(omni + "rate", "100 Gb/sec (4X EDR)\n");
  tree.put(omni + "state", "4: ACTIVE\n");
  tree.put(omni + "link_layer", "InfiniBand\n");
  const std::vector<Port> wanted{
      {"hfi1_0/1", "Omni-Path", true, 100}, {"mlx5_0/1", "InfiniBand", true, 200}, {"mlx5_1/1", "RoCE", false, 25}};
  EXPECT_EQ(read_ports(tree.root()), wanted);
}

TEST(DoctorSystem, FindsSlingshotByItsInterface) {
  const Tree tree;
  tree.put("sys/class/cxi/cxi0/device/net/hsn0/operstate", "up\n");
  tree.put("sys/class/cxi/cxi0/device/net/hsn0/speed", "200000\n");
  tree.put("sys/class/cxi/cxi1/device/net/hsn1/operstate", "down\n");
  tree.put("sys/class/cxi/cxi1/device/net/hsn1/speed", "-1\n");
  tree.put("sys/class/net/hsn0/type", "1\n");  // the same adapter, reported once
  tree.put("sys/class/net/hsn0/operstate", "up\n");
  tree.put("sys/class/net/hsn0/device/x", "");
  const std::vector<Port> wanted{{"cxi0", "Slingshot", true, 200}, {"cxi1", "Slingshot", false, 0}};
  EXPECT_EQ(read_ports(tree.root()), wanted);
}

TEST(DoctorSystem, FindsEthernetThatIsUpAndOfADevice) {
  const Tree tree;
  for (const std::string name : {"eth0", "eth1", "docker0", "lo"}) {
    tree.put("sys/class/net/" + name + "/type", name == "lo" ? "772\n" : "1\n");
    tree.put("sys/class/net/" + name + "/operstate", name == "eth1" ? "down\n" : "up\n");
    tree.put("sys/class/net/" + name + "/speed", "10000\n");
    if (name != "docker0") tree.put("sys/class/net/" + name + "/device/x", "");
  }
  const std::vector<Port> wanted{{"eth0", "Ethernet", true, 10}};
  EXPECT_EQ(read_ports(tree.root()), wanted);
}

TEST(DoctorSystem, FindsGpusByDriverOrDevice) {
  const Tree tree;
  tree.put("dev/nvidia0", "");
  tree.put("dev/nvidia1", "");
  tree.put("dev/nvidiactl", "");
  tree.put("dev/nvidia-uvm", "");
  EXPECT_EQ(read_gpus(tree.root()), (std::vector<std::string>{"NVIDIA device", "NVIDIA device"}));
  tree.put("proc/driver/nvidia/gpus/0000:01:00.0/information", "Model: \t\t NVIDIA A100-SXM4-40GB\nIRQ: 5\n");
  EXPECT_EQ(read_gpus(tree.root()), (std::vector<std::string>{"NVIDIA A100-SXM4-40GB"}));
}

TEST(DoctorSystem, ReadsGovernorsPagesAndBalancing) {
  const Tree tree;
  for (const std::string policy : {"policy0", "policy1", "policy2"})
    tree.put("sys/devices/system/cpu/cpufreq/" + policy + "/scaling_governor",
             policy == "policy1" ? "powersave\n" : "performance\n");
  EXPECT_EQ(read_governors(tree.root()), (std::vector<std::string>{"performance", "powersave"}));
  tree.put("sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n");
  EXPECT_EQ(read_huge_pages(tree.root()), "never");
  tree.put("sys/kernel/mm/transparent_hugepage/enabled", "nonsense\n");
  EXPECT_EQ(read_huge_pages(tree.root()), "");
  tree.put("proc/sys/kernel/numa_balancing", "1\n");
  EXPECT_EQ(read_numa_balancing(tree.root()), 1);
  for (const std::string entry : {"node0/x", "node1/x", "node12/x", "nodes/x", "online"})
    tree.put("sys/devices/system/node/" + entry, "");
  EXPECT_EQ(count_numa_nodes(tree.root()), 3);
}

TEST(DoctorSystem, TakesTheLeastQuotaOfAllGroupsAbove) {
  const Tree tree;
  tree.put("proc/self/cgroup", "0::/job/step\n");
  tree.put("sys/fs/cgroup/job/step/cpu.max", "max 100000\n");
  EXPECT_EQ(read_cpu_quota(tree.root()), 0);
  tree.put("sys/fs/cgroup/job/cpu.max", "150000 100000\n");
  EXPECT_EQ(read_cpu_quota(tree.root()), 1.5);
  tree.put("sys/fs/cgroup/job/step/cpu.max", "400000 100000\n");
  EXPECT_EQ(read_cpu_quota(tree.root()), 1.5);
}

TEST(DoctorSystem, ReadsTheQuotaOfVersionOne) {
  const Tree tree;
  tree.put("proc/self/cgroup", "4:memory:/m\n2:cpu,cpuacct:/docker/1\nnonsense\n");
  tree.put("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "200000\n");  // as seen in a container
  tree.put("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(read_cpu_quota(tree.root()), 2);
  tree.put("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(read_cpu_quota(tree.root()), 0);
}

TEST(DoctorSystem, FindsLibrariesThatMatter) {
  const std::vector<Library> found = find_libraries(
      "55d0-55d1 r-xp 00000000 fd:01 1   /opt/bin/lockstep\n"
      "7f00-7f01 r--p 00000000 fd:01 2                         /usr/lib/libmpi.so.40.30.4\n"
      "7f01-7f02 r-xp 00001000 fd:01 2                         /usr/lib/libmpi.so.40.30.4\n"
      "7f02-7f03 r--p 00000000 fd:01 3                         /usr/lib/libc.so.6\n"
      "7f03-7f04 r--p 00000000 fd:01 4                         /home/a b/libhdf5_serial.so.103\n"
      "7f04-7f05 rw-p 00000000 00:00 0\n"
      "7f05-7f06 rw-p 00000000 00:00 0                         [stack]\n"
      "nonsense");
  ASSERT_EQ(found.size(), 2);
  EXPECT_EQ(found[0].path, "/home/a b/libhdf5_serial.so.103");
  EXPECT_EQ(found[1].name, "libmpi.so.40.30.4");
}

TEST(DoctorSystem, NamesFileSystems) {
  EXPECT_EQ(name_file_system(0x6969), "NFS");
  EXPECT_TRUE(is_network_file_system(0x6969));
  EXPECT_EQ(name_file_system(0x0BD00BD0), "Lustre");
  EXPECT_EQ(name_file_system(0x01021994), "tmpfs");
  EXPECT_FALSE(is_network_file_system(0x01021994));
  EXPECT_EQ(name_file_system(0x1234), "type 0x1234");
  EXPECT_FALSE(is_network_file_system(0x1234));
}

}  // namespace
}  // namespace lockstep::training::doctor
