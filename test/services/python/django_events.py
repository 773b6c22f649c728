"""A Django project with django-eventstream, with the setup of its README, and a view that publishes."""

import json
import os

import django
from django.conf import settings
from django.http import HttpResponse
from django.urls import include, path

import serving

arguments = serving.arguments(data=(".", "folder of the database"))

settings.configure(
    SECRET_KEY="a public key for tests",
    ALLOWED_HOSTS=["*"],
    ROOT_URLCONF=__name__,
    USE_TZ=True,
    DEFAULT_AUTO_FIELD="django.db.models.AutoField",
    INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth", "django_eventstream"],
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": os.path.join(arguments.data, "events.sqlite3"),
            # Settings of Django's documentation for several writers. Without them, one of two concurrent writers fails.
            "OPTIONS": {"timeout": 20, "transaction_mode": "IMMEDIATE", "init_command": "PRAGMA journal_mode=WAL;"},
        }
    },
    EVENTSTREAM_STORAGE_CLASS="django_eventstream.storage.DjangoModelStorage",
)
django.setup()

import django_eventstream.urls  # noqa: E402: the import requires the settings
from django.core.asgi import get_asgi_application  # noqa: E402
from django.core.management import call_command  # noqa: E402


def publish(request, channel):
    django_eventstream.send_event(channel, "message", json.loads(request.body))
    return HttpResponse(status=204)


urlpatterns = [
    path("events/<channel>/", include(django_eventstream.urls)),
    path("publish/<channel>", publish),
]

if __name__ == "__main__":
    call_command("migrate", verbosity=0)
    serving.serve(get_asgi_application(), arguments.listen)
