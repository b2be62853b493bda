#include "simulator/arch.h"

#include "simulator/fault.h"

namespace simulator {

Arch FindArch(const std::string& name) {
  static const auto* const archs = [] {
    const std::string none, gfx11 = "gfx11-generic", gfx12 = "gfx12-generic";
    return new std::vector<Arch>{
        {"gfx90a", 0x3f, none, Isa::kGfx9, &OpcodesGfx90a(), true, true, false},
        {"gfx942", 0x4c, none, Isa::kGfx9, &OpcodesGfx940(), false, false, true},
        {"gfx950", 0x4f, none, Isa::kGfx9, &OpcodesGfx950(), false, false, true},
        {"gfx1100", 0x41, gfx11, Isa::kGfx11, &OpcodesGfx11()},
        {"gfx1101", 0x46, gfx11, Isa::kGfx11, &OpcodesGfx11()},
        {"gfx1102", 0x47, gfx11, Isa::kGfx11, &OpcodesGfx11()},
        {"gfx1103", 0x44, gfx11, Isa::kGfx11, &OpcodesGfx11()},
        {"gfx1150", 0x43, gfx11, Isa::kGfx11, &OpcodesGfx1150()},
        {"gfx1151", 0x4a, gfx11, Isa::kGfx11, &OpcodesGfx1150()},
        {"gfx1152", 0x55, gfx11, Isa::kGfx11, &OpcodesGfx1150()},
        {"gfx1153", 0x58, gfx11, Isa::kGfx11, &OpcodesGfx1150()},
        {gfx11, 0x54, gfx11, Isa::kGfx11, &OpcodesGfx11()},
        {"gfx1200", 0x48, gfx12, Isa::kGfx12, &OpcodesGfx12()},
        {"gfx1201", 0x4e, gfx12, Isa::kGfx12, &OpcodesGfx12()},
        {gfx12, 0x59, gfx12, Isa::kGfx12, &OpcodesGfx12()},
    };
  }();
  std::string names;
  for (const Arch& arch : *archs) {
    if (arch.name == name) return arch;
    names += " " + arch.name;
  }
  throw Fault("arch ", name, " is not modelled; these are:", names);
}

}  // namespace simulator
