#include "training/doctor/mpi_library.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <sstream>

namespace lockstep::training::doctor {
namespace {

struct KnownMpi {
  std::string_view word;  ///< of what it says of itself
  MpiFamily family;
};
/// Specific ones first, because all descendants of MPICH may also name MPICH.
constexpr std::array<KnownMpi, 6> known_mpis{{{"Open MPI", MpiFamily::open_mpi},
                                              {"CRAY MPICH", MpiFamily::cray_mpich},
                                              {"Cray MPICH", MpiFamily::cray_mpich},
                                              {"Intel(R) MPI", MpiFamily::intel_mpi},
                                              {"MVAPICH", MpiFamily::mvapich},
                                              {"MPICH", MpiFamily::mpich}}};

/// Returns nothing if it is not set.
std::string value_of(const Facts& facts, const std::string& variable) {
  const auto found = facts.variables.find(variable);
  return found == facts.variables.end() ? "" : found->second;
}

bool has_word(std::string_view list, std::string_view word) {
  return ("," + std::string{list} + ",").find("," + std::string{word} + ",") != std::string::npos;
}

bool has_loaded(const Facts& facts, std::string_view beginning) {
  return std::ranges::any_of(facts.libraries, [&](const Library& l) { return l.name.starts_with(beginning); });
}

/// A list that begins with '^' means everything else.
bool is_choice(const std::string& list) { return !list.empty() && list.front() != '^'; }

/// Whether a list of UCX_TLS has a transport of a fabric: "rc_x", "dc", "ud_verbs", "ib", "all".
bool has_fabric_transport(const std::string& tls) {
  constexpr std::array<std::string_view, 5> beginnings{"rc", "dc", "ud", "ib", "all"};
  std::istringstream words{tls};
  for (std::string word; std::getline(words, word, ',');)
    if (std::ranges::any_of(beginnings, [&word](std::string_view begin) { return word.starts_with(begin); }))
      return true;
  return false;
}

/// UCX and libfabric on sockets alone.
std::optional<Carrier> find_forced_sockets(const Facts& facts) {
  const std::string tls = value_of(facts, "UCX_TLS"), provider = value_of(facts, "FI_PROVIDER");
  if (is_choice(tls) && has_word(tls, "tcp") && !has_fabric_transport(tls))
    return Carrier{Transport::sockets, fmt::format("UCX_TLS={}", tls)};
  if (provider == "tcp" || provider == "sockets" || provider == "tcp;ofi_rxm" || provider == "udp;ofi_rxd")
    return Carrier{Transport::sockets, fmt::format("FI_PROVIDER={}", provider)};
  return std::nullopt;
}

Carrier find_open_mpi_carrier(const Facts& facts) {
  const std::string pml = value_of(facts, "OMPI_MCA_pml"), btl = value_of(facts, "OMPI_MCA_btl");
  if (pml == "ucx") return {Transport::ucx, "OMPI_MCA_pml=ucx"};
  if (pml == "cm") return {Transport::libfabric, "OMPI_MCA_pml=cm"};
  const bool has_other_btl = has_word(btl, "openib") || has_word(btl, "uct") || has_word(btl, "ofi");
  if (pml == "ob1" && is_choice(btl) && !has_other_btl)
    return {Transport::sockets, fmt::format("OMPI_MCA_pml=ob1, OMPI_MCA_btl={}", btl)};
  if (has_loaded(facts, "mca_pml_ucx")) return {Transport::ucx, "mca_pml_ucx is loaded"};
  if (has_loaded(facts, "mca_mtl_ofi")) return {Transport::libfabric, "mca_mtl_ofi is loaded"};
  const bool has_fast_btl =
      has_loaded(facts, "mca_btl_openib") || has_loaded(facts, "mca_btl_uct") || has_loaded(facts, "mca_btl_ofi");
  if (has_loaded(facts, "mca_pml_ob1") && has_loaded(facts, "mca_btl_tcp") && !has_fast_btl)
    return {Transport::sockets, "mca_pml_ob1 with mca_btl_tcp is loaded"};
  return {};
}

Carrier find_mpich_carrier(const Facts& facts) {
  const std::string& library = facts.mpi_library;
  const std::string provider = value_of(facts, "FI_PROVIDER");
  if (!provider.empty()) return {Transport::libfabric, fmt::format("FI_PROVIDER={}", provider)};
  if (library.find("ch4:ucx") != library.npos) return {Transport::ucx, "MPICH is built as ch4:ucx"};
  if (library.find("ch4:ofi") != library.npos) return {Transport::libfabric, "MPICH is built as ch4:ofi"};
  if (library.find("ch3:nemesis") != library.npos) return {Transport::sockets, "MPICH is built as ch3:nemesis"};
  return {};
}

}  // namespace

std::string name_mpi(std::string_view library) {
  std::string_view line = library.substr(0, library.find('\n'));
  line = line.substr(0, line.find(','));
  std::string name{line};
  std::ranges::replace(name, '\t', ' ');
  const std::size_t end = name.find_last_not_of(' ');
  name.erase(end == name.npos ? 0 : end + 1);
  const auto is_double = [](char a, char b) { return a == ' ' && b == ' '; };
  name.erase(std::unique(name.begin(), name.end(), is_double), name.end());
  return name.empty() ? "an unknown MPI" : name;
}

MpiFamily find_family(std::string_view library) noexcept {
  for (const KnownMpi& known : known_mpis)
    if (library.find(known.word) != library.npos) return known.family;
  return MpiFamily::other;
}

bool descends_from_mpich(MpiFamily family) noexcept {
  return family != MpiFamily::open_mpi && family != MpiFamily::other;
}

Carrier find_carrier(const Facts& facts) {
  if (const auto forced = find_forced_sockets(facts)) return *forced;
  const MpiFamily family = find_family(facts.mpi_library);
  if (family == MpiFamily::open_mpi) return find_open_mpi_carrier(facts);
  return descends_from_mpich(family) ? find_mpich_carrier(facts) : Carrier{};
}

}  // namespace lockstep::training::doctor
