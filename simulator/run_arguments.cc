#include "simulator/run_arguments.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <ostream>
#include <random>

#include "simulator/fault.h"
#include "simulator/numbers.h"

namespace simulator {
namespace {

struct ElementType {
  const char* name;
  size_t size;
};
constexpr ElementType kTypes[] = {{"fp32", 4}, {"fp16", 2}, {"bf16", 2}, {"i8", 1}, {"i32", 4}, {"i64", 8}};
constexpr const char* kForms = "; give TYPE=NUMBER, TYPE:COUNT:CONTENT or null, with TYPE fp32, fp16, bf16, i8, i32 or i64";

size_t SizeOf(const std::string& type, const std::string& text) {
  for (const ElementType& one : kTypes) {
    if (type == one.name) return one.size;
  }
  throw Fault("argument ", text, ": no such type ", type, kForms);
}

void Store(const std::string& type, double number, int64_t integer, uint8_t* to) {
  const uint32_t word = type == "fp32" ? Bits(static_cast<float>(number))
                        : type == "fp16" ? FloatToHalf(static_cast<float>(number)) : FloatToBfloat(static_cast<float>(number));
  if (type[0] == 'i') {
    memcpy(to, &integer, type == "i8" ? 1 : type == "i32" ? 4 : 8);
  } else {
    memcpy(to, &word, type == "fp32" ? 4 : 2);
  }
}

void StoreText(const std::string& type, const std::string& number, const std::string& text, uint8_t* to) {
  char* end;
  const double real = strtod(number.c_str(), &end);
  const bool is_real = !number.empty() && *end == '\0';
  const int64_t integer = strtoll(number.c_str(), &end, 0);
  if (type[0] == 'i' ? number.empty() || *end != '\0' : !is_real) throw Fault("argument ", text, ": ", number, " is no number of ", type);
  Store(type, real, integer, to);
}

void Fill(const RunArgument& argument, const std::string& content, size_t size, uint8_t* bytes) {
  const size_t all = argument.count * size;
  if (content == "random") {
    std::mt19937_64 random(argument.count);
    std::normal_distribution<double> normal;
    for (uint64_t i = 0; i < argument.count; ++i) Store(argument.type, normal(random), static_cast<int64_t>(random() % 256), bytes + i * size);
  } else if (content[0] == '@') {
    std::ifstream file(content.substr(1), std::ios::binary);
    if (!file) throw Fault("argument ", argument.text, ": ", content.substr(1), " cannot be read");
    const std::vector<char> read((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    if (read.size() != all) throw Fault("argument ", argument.text, ": ", content.substr(1), " has ", read.size(), " bytes, not ", all);
    std::copy(read.begin(), read.end(), bytes);
  } else {
    for (uint64_t i = 0; i < argument.count; ++i) StoreText(argument.type, content, argument.text, bytes + i * size);
  }
}

void PrintElement(std::ostream& out, const std::string& type, const uint8_t* from) {
  uint32_t word = 0;
  int64_t integer = 0;
  if (type[0] == 'i') {
    memcpy(&integer, from, type == "i8" ? 1 : type == "i32" ? 4 : 8);
    if (type == "i8") integer = static_cast<int8_t>(integer);
    if (type == "i32") integer = static_cast<int32_t>(integer);
    out << " " << integer;
    return;
  }
  memcpy(&word, from, type == "fp32" ? 4 : 2);
  out << " " << (type == "fp32" ? Float(word) : type == "fp16" ? HalfToFloat(word) : BfloatToFloat(word));
}

}  // namespace

RunArgument ReadArgument(const std::string& text, Memory* memory) {
  RunArgument argument;
  argument.text = text;
  if (text == "null") {
    argument.value.resize(sizeof(uint64_t));
    return argument;
  }
  const size_t end = text.find_first_of("=:");
  if (end == std::string::npos) throw Fault("argument ", text, " cannot be read", kForms);
  argument.type = text.substr(0, end);
  const size_t size = SizeOf(argument.type, text);
  if (text[end] == '=') {
    argument.value.resize(size);
    StoreText(argument.type, text.substr(end + 1), text, argument.value.data());
    return argument;
  }
  const size_t second = text.find(':', end + 1);
  char* after;
  argument.is_buffer = true;
  argument.count = strtoull(text.c_str() + end + 1, &after, 10);
  if (second == std::string::npos || after != text.c_str() + second || argument.count == 0 || argument.count > (1u << 30)) {
    throw Fault("argument ", text, ": it has no COUNT from 1 to ", 1u << 30, kForms);
  }
  const std::string content = text.substr(second + 1);
  const size_t all = argument.count * size;
  argument.address = memory->Allocate(all);
  if (content != "undefined") {
    Fill(argument, content, size, reinterpret_cast<uint8_t*>(argument.address));
    memory->SetDefined(argument.address, all);
  }
  const auto* bytes = reinterpret_cast<const uint8_t*>(argument.address);
  argument.before.assign(bytes, bytes + all);
  argument.value.resize(sizeof(argument.address));
  memcpy(argument.value.data(), &argument.address, sizeof(argument.address));
  return argument;
}

std::vector<uint8_t> PackArguments(const Kernel& kernel, const std::vector<RunArgument>& arguments) {
  std::vector<uint8_t> bytes(kernel.kernarg_size);
  size_t number = 0, due = 0;
  for (const KernelArgument& one : kernel.arguments) due += !one.hidden;
  if (arguments.size() != due) throw Fault(kernel.name, " takes ", due, " arguments, ", arguments.size(), " are given");
  for (const KernelArgument& one : kernel.arguments) {
    if (one.hidden) continue;
    const RunArgument& given = arguments[number++];
    if (given.value.size() != one.size || one.offset + size_t{one.size} > bytes.size()) {
      throw Fault("argument ", number, " of ", kernel.name, " has ", one.size, " bytes, ", given.text, " has ", given.value.size());
    }
    std::copy(given.value.begin(), given.value.end(), bytes.begin() + one.offset);
  }
  return bytes;
}

void PrintResults(std::ostream& out, const std::vector<RunArgument>& arguments) {
  constexpr uint64_t kShown = 8;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const RunArgument& one = arguments[i];
    if (!one.is_buffer || memcmp(one.before.data(), reinterpret_cast<const void*>(one.address), one.before.size()) == 0) continue;
    const size_t size = one.before.size() / one.count;
    out << "argument " << i + 1 << " was written:";
    for (uint64_t k = 0; k < std::min(one.count, kShown); ++k) PrintElement(out, one.type, reinterpret_cast<const uint8_t*>(one.address) + k * size);
    out << (one.count > kShown ? " ...\n" : "\n");
  }
}

}  // namespace simulator
