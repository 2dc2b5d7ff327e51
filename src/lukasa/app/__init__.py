"""The composition root: settings in, a Lukasa out. The only package that names concrete classes."""

from lukasa.app.backups import check_backups, is_backup_folder, list_backups, restore_backup
from lukasa.app.earlier import EarlierFolders, earlier_folders, take_over
from lukasa.app.memory import Lukasa
from lukasa.app.move import moving
from lukasa.app.outside import model_status, open_curated_file, open_decisions, past_reader, pull_model
from lukasa.app.portable import clear_whole, import_whole, open_export
from lukasa.app.removal import account_removal
from lukasa.app.settings import DEFAULT_ACCOUNT, DEFAULT_WORKSPACE, Settings

__all__ = [
    "DEFAULT_ACCOUNT",
    "DEFAULT_WORKSPACE",
    "EarlierFolders",
    "Lukasa",
    "Settings",
    "account_removal",
    "check_backups",
    "clear_whole",
    "earlier_folders",
    "import_whole",
    "is_backup_folder",
    "list_backups",
    "model_status",
    "moving",
    "open_curated_file",
    "open_decisions",
    "open_export",
    "past_reader",
    "pull_model",
    "restore_backup",
    "take_over",
]
