"""`mla memory`: what preparation borrows is given back. A build with MLA_RETAIN_PRIMING must
fail here and name the bytes."""
import program


class Lifetime(program.ProgramTest):
    def test_transient_bytes_rise_while_preparing_and_read_0_after(self):
        for kv_format in ("bf16", "fp8"):
            phases = program.memory_phases(self, "--kv", kv_format)
            held = {name: classes["session"]["now"] for name, classes in phases.items()}
            self.assertEqual(held.pop("loaded"), 0)
            rise = held.pop("preparing")
            self.assertGreater(rise, 0)
            for name in ("prepared", "frozen", "served", "closed"):
                self.assertEqual(held[name], 0, f"class session holds {held[name]} bytes: {name}")
            self.assertGreaterEqual(phases["prepared"]["session"]["peak"], rise)


if __name__ == "__main__":
    program.main()
