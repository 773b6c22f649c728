"""Reads responses of a server with the official clients of OpenAI and Anthropic, and prints a JSON object for each."""

import argparse
import json

import anthropic
import openai

parser = argparse.ArgumentParser()
parser.add_argument("--url", required=True)
url = parser.parse_args().url
messages = [{"role": "user", "content": ""}]
openai_client = openai.OpenAI(base_url=url + "/v1", api_key="none", max_retries=0)
anthropic_client = anthropic.Anthropic(base_url=url, api_key="none", max_retries=0)


def chat():
    stream = openai_client.chat.completions.create(
        model="m", messages=messages, stream=True, stream_options={"include_usage": True})
    text, reason, usage = "", None, None
    for chunk in stream:
        usage = chunk.usage or usage
        for choice in chunk.choices:
            text += choice.delta.content or ""
            reason = choice.finish_reason or reason
    return {"text": text, "end": reason, "tokens": usage.completion_tokens}


def chat_whole():
    answer = openai_client.chat.completions.create(model="m", messages=messages)
    choice = answer.choices[0]
    return {"text": choice.message.content, "end": choice.finish_reason, "tokens": answer.usage.completion_tokens}


def responses():
    text = ""
    with openai_client.responses.stream(model="m", input=messages[0]["content"]) as stream:
        for event in stream:
            if event.type == "response.output_text.delta":
                text += event.delta
        answer = stream.get_final_response()
    assert answer.output_text == text, answer.output_text
    return {"text": text, "end": answer.status, "tokens": answer.usage.output_tokens}


def responses_whole():
    answer = openai_client.responses.create(model="m", input=messages[0]["content"])
    return {"text": answer.output_text, "end": answer.status, "tokens": answer.usage.output_tokens}


def anthropic_stream():
    with anthropic_client.messages.stream(model="m", max_tokens=1000, messages=messages) as stream:
        text = "".join(stream.text_stream)
        answer = stream.get_final_message()
    assert answer.content[0].text == text, answer
    return {"text": text, "end": answer.stop_reason, "tokens": answer.usage.output_tokens}


def anthropic_whole():
    answer = anthropic_client.messages.create(model="m", max_tokens=1000, messages=messages)
    return {"text": answer.content[0].text, "end": answer.stop_reason, "tokens": answer.usage.output_tokens}


for read in (chat, chat_whole, responses, responses_whole, anthropic_stream, anthropic_whole):
    for fault in ("none", "length", "error", "429"):
        messages[0]["content"] = f"soak id={read.__name__} fault={fault}"
        out = {"read": read.__name__, "fault": fault}
        try:
            out |= read()
        except Exception as error:
            out["error"] = type(error).__name__
        print(json.dumps(out))
