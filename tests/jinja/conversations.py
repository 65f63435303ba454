"""Conversations that make a chat template do all it can: every role, tools, thoughts, and texts
with every kind of blank."""

CALL = {"id": "call_0", "type": "function",
        "function": {"name": "weather", "arguments": '{"city": "Z\u00fcrich", "days": 2}'}}
PARSED = {"id": "call_1", "type": "function",
          "function": {"name": "add", "arguments": {"a": 1, "b": [2.5, None, True], "c": "x\ny"}}}
TOOLS = [
    {"type": "function", "function": {
        "name": "weather", "description": "The weather of a city, in \u00b0C & \"words\".",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"},
                                                        "days": {"type": "integer", "default": 1}},
                       "required": ["city"]}}},
    {"type": "function", "function": {"name": "add", "parameters": {"type": "object", "properties": {}}}},
]


def said(role, content, **more):
    return {"role": role, "content": content, **more}


TALKS = [
    [said("user", "Hello")],
    [said("system", "Be brief."), said("user", "  Two  blanks \n\n and\ttabs\n")],
    [said("system", "One"), said("system", "Two"), said("user", "it's \"quoted\" \\ <b>&amp;</b>")],
    [said("user", "1"), said("assistant", "2"), said("user", "3"), said("assistant", "\n4\n")],
    [said("user", "think"), said("assistant", "<think>\nwell\n</think>\n\nso"), said("user", "again"),
     said("assistant", "<think>a</think>b")],
    [said("user", "think"), said("assistant", "so", reasoning_content="\nwell\n"), said("user", "/nothink")],
    [said("user", "weather?"), said("assistant", None, tool_calls=[CALL]),
     said("tool", "12 \u00b0C", tool_call_id="call_0"), said("assistant", "Cold."), said("user", "ok")],
    [said("user", "weather?"), said("assistant", "Let me see.", tool_calls=[CALL, CALL]),
     said("tool", "12"), said("tool", "13"), said("assistant", "So.")],
    [said("user", "sum"), said("assistant", "", tool_calls=[PARSED]), said("tool", "4")],
    [said("user", "\u4f60\u597d \U0001f600 <\uff5cAssistant\uff5c> <|im_end|> [gMASK]"), said("assistant", "")],
    [said("assistant", "I begin."), said("user", "")],
    [said("user", "x", name="Ann"), said("developer", "d"), said("user", "y")],
    [said("user", [{"type": "text", "text": "part one, "}, {"type": "text", "text": "part two"}])],
    [],
]

SETTINGS = [
    {"add_generation_prompt": True},
    {"add_generation_prompt": False},
    {"add_generation_prompt": True, "tools": TOOLS},
    {"add_generation_prompt": True, "enable_thinking": False, "thinking": False},
    {"add_generation_prompt": True, "enable_thinking": True, "thinking": True, "tools": TOOLS[:1]},
    {"add_generation_prompt": True, "continue_final_message": False, "clear_thinking": True},
]

OWN = {"bos_token": "<\uff5cbegin\u2581of\u2581sentence\uff5c>", "eos_token": "<\uff5cend\u2581of\u2581sentence\uff5c>",
       "pad_token": "<pad>"}


def all_fields():
    """Each talk in each setting, as transformers hands them to a template."""
    for talk in TALKS:
        for setting in SETTINGS:
            yield {"tools": None, "documents": None, **setting, "messages": talk}
