<?php
/**
 * Plugin Name: Reelgate
 * Description: Protected videos of your Reelgate server in posts, pages and lessons.
 * Version: 0.3.0
 * Requires at least: 5.7
 * Requires PHP: 7.4
 * License: MIT
 * Text Domain: reelgate
 */

namespace Reelgate;

defined( 'ABSPATH' ) || exit;

const VERSION = '0.3.0';
const PLUGIN_FILE = __FILE__;

require_once __DIR__ . '/includes/options.php';
require_once __DIR__ . '/includes/client.php';
require_once __DIR__ . '/includes/tag.php';
require_once __DIR__ . '/includes/watermark.php';
require_once __DIR__ . '/includes/embed.php';
require_once __DIR__ . '/includes/visitor.php';
require_once __DIR__ . '/includes/editor.php';
require_once __DIR__ . '/includes/privacy.php';
require_once __DIR__ . '/includes/settings.php';

// After other plug-ins: their [vdo] and vdo/block are left alone where they are active.
add_action( 'init', __NAMESPACE__ . '\\register_embeds', 20 );
add_action( 'wp_enqueue_scripts', __NAMESPACE__ . '\\register_script' );
// Not the REST API: without a nonce, which a cached page has for too long, it treats everybody as signed out.
foreach ( array( 'otp', 'completed' ) as $reelgate_call ) {
	add_action( 'wp_ajax_reelgate_' . $reelgate_call, __NAMESPACE__ . '\\answer_' . $reelgate_call );
	add_action( 'wp_ajax_nopriv_reelgate_' . $reelgate_call, __NAMESPACE__ . '\\answer_' . $reelgate_call );
}
add_action( 'rest_api_init', __NAMESPACE__ . '\\register_editor_routes' );
add_action( 'enqueue_block_editor_assets', __NAMESPACE__ . '\\enqueue_editor' );
add_filter( 'wp_privacy_personal_data_erasers', __NAMESPACE__ . '\\add_eraser' );
add_action( 'admin_init', __NAMESPACE__ . '\\register_settings' );
add_action( 'admin_menu', __NAMESPACE__ . '\\add_settings_page' );
add_action( 'wp_ajax_reelgate_test', __NAMESPACE__ . '\\answer_test' );
add_filter( 'plugin_action_links_' . plugin_basename( __FILE__ ), __NAMESPACE__ . '\\link_to_settings' );
